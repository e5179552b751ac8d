"""The view Learn: a walk through the attention of one step of an answer, with the model's own numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field
from torch import Tensor

from regard.core.attention import NORMALIZERS
from regard.core.local import LocalPredictive
from regard.core.scores import AdditiveTerms
from regard.evidence.attention_reads import Alteration, AttentionRead, ObservedStep, PausedDecoder, Place
from regard.look.trace import Side
from regard.search.force_decode import force_decode
from regard.serving.server import Server
from regard.serving.studio.patterns import PatternText, problem_of
from regard.serving.studio.requests import ModelName
from regard.tasks.translation.predictor import Translator
from regard.text.vocabulary import END

MAX_CHARACTERS = 400  # of a text that is walked through
MAX_TOKENS = 1000
NEXT_TOKENS = 8  # that are listed

router = APIRouter(tags=["studio"])

Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]
Index = Annotated[int, Field(ge=0, le=MAX_TOKENS)]


class LearnRequest(BaseModel):
    """A sentence whose translation is walked through."""

    model: ModelName = None
    text: Text


class StepRequest(LearnRequest):
    """A step of the translation, a head, and parts of attention that replace the model's own."""

    tokens: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=MAX_TOKENS)]
    step: Index = 0
    layer: Index = 0
    head: Index = 0
    score: Literal["dot", "scaled_dot", "cosine"] | None = None
    normalizer: Literal["softmax", "sparsemax", "entmax15", "hard"] | None = None
    pattern: PatternText | None = None
    temperature: Annotated[float, Field(ge=0.01, le=100)] = 1.0
    everywhere: bool = Field(False, description="Whether all heads of all layers are altered, or the one alone.")

    @property
    def is_altered(self) -> bool:
        """whether a part differs from the model's own"""
        return self.temperature != 1 or any(part is not None for part in (self.score, self.normalizer, self.pattern))


@router.post("/learn")
async def learn(request: LearnRequest, server: Server) -> dict[str, Any]:
    """Translate a sentence, and return its pieces and the weights of every head."""
    return await server.store.translator(request.model).call(lambda model: walked_answer(model, request.text))


@router.post("/learn-step")
async def learn_step(request: StepRequest, server: Server) -> dict[str, Any]:
    """Return the attention of one step in full: with the model's own parts, and with others."""
    return await server.store.translator(request.model).call(lambda model: walked_step(model, request))


# From a translator to JSON


def walked_answer(translator: Translator, text: str) -> dict[str, Any]:
    """Return {"source", "target", "tokens", "weights": [layers][heads][target pieces][source pieces], "notices"}; of a
    text that is translated in parts, the first of them."""
    (answer,) = translator.answers([text])
    traces = answer.translations[0].traces
    if not traces:
        raise ValueError("text: expected a sentence to translate, got none")
    trace, notices = traces[0], list(answer.notices)
    if len(traces) > 1:
        notices.append("Only the first part is shown.")
    tokens = translator.target_tokens(trace)
    inputs = translator.batch([trace.source.tokens])
    (decoding,) = force_decode(translator.model, *inputs, [tokens], self_attention=False)  # in float32, as the steps
    return {
        "source": _side(trace.source),
        "target": _side(trace.target),
        "tokens": tokens,
        "weights": decoding.weights.round(4).tolist(),
        "notices": notices,
    }


def walked_step(translator: Translator, request: StepRequest) -> dict[str, Any]:
    """Return {"own", "altered": or None, "next": the likeliest next tokens, "problem": of the altered parts or None}.

    Both readings have the query, energies, weights and context; the keys and values are those of `own`.
    """
    size = len(translator.vocabularies.target)
    if request.step >= len(request.tokens) or max(request.tokens) >= size:
        raise ValueError(f"step: expected a place in the tokens, which are below {size}, got {request.step}")
    source = translator.source_tokens(request.text)
    decoder = PausedDecoder(translator, source, request.tokens[: request.step])
    own = decoder.observe()
    heads = own.reads[0].weights.shape[0]
    if request.layer >= len(own.reads) or request.head >= heads:
        known = f"{len(own.reads)} layers of {heads} heads"
        raise ValueError(f"layer, head: expected one of {known}, got {request.layer} and {request.head}")
    altered, problem = None, None
    if request.is_altered:
        try:
            parts = Alteration(request.score, request.normalizer, request.pattern, request.temperature)
            place = None if request.everywhere else Place(request.layer, request.head)
            altered = decoder.observe(parts, place)
        except ValueError as error:
            problem = problem_of(error, request.pattern or "")
    read, head = own.reads[request.layer], request.head
    return {
        "own": _reading(read, head) | _states(read, head),
        "altered": None if altered is None else _reading(altered.reads[request.layer], head),
        "next": _next_tokens(translator, own, altered, request.tokens[request.step]),
        "problem": problem,
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "pieces": [piece.text for piece in side.pieces],
        "ended": side.ended,
        "direction": side.direction,
        "language": side.language,
    }


def _states(read: AttentionRead, head: int) -> dict[str, Any]:
    """Return what alterations leave as it is."""
    terms = read.terms
    return {
        "keys": _numbers(terms.key[0].expand(len(read.weights), -1, -1)[head]),
        "values": _numbers(read.values[head]),
    }


def _reading(read: AttentionRead, head: int) -> dict[str, Any]:
    """Return the parts and numbers of one head."""
    terms, request = read.terms, read.request
    scale = vector = None
    if isinstance(terms, AdditiveTerms):
        vector = terms.vector.expand(len(read.weights), -1)[head] * read.temperature
    else:
        scale = terms.scale * read.temperature
    gain, threshold = read.gain, read.threshold
    names = {kind: name for name, kind in NORMALIZERS.items()}
    pattern = request.pattern.within if isinstance(request.pattern, LocalPredictive) else request.pattern
    return {
        "score": request.score.title,
        "scale": scale,
        "vector": None if vector is None else _numbers(vector),
        "normalizer": names[type(request.normalizer)],
        "pattern": str(pattern),
        "temperature": read.temperature,
        "query": _numbers(terms.query[0].expand(len(read.weights), -1, -1)[head, 0]),
        "scores": _numbers(read.energies[head] * read.temperature, 6),
        "allowed": read.allowed[head].tolist(),
        "gain": None if gain is None else _numbers(gain[head], 6),
        "threshold": None if threshold is None else _numbers(threshold[head], 6),
        "weights": _numbers(read.weights[head], 6),
        "context": _numbers(read.context[head]),
    }


def _next_tokens(
    translator: Translator, own: ObservedStep, altered: ObservedStep | None, chosen: int
) -> list[dict[str, Any]]:
    """Return the likeliest next tokens, and the one that the answer has, with their probabilities."""
    both = [each.log_probs.exp() for each in (own, altered) if each is not None]
    for probabilities in both:
        probabilities[:END] = 0  # padding and start, which are never written
    listed = dict.fromkeys([chosen, *(token for each in both for token in each.topk(NEXT_TOKENS).indices.tolist())])
    ranked = sorted(listed, key=lambda token: -float(both[-1][token]))[:NEXT_TOKENS]
    shown = ranked if chosen in ranked else [*ranked, chosen]
    return [
        {
            "text": translator.token_text(token),
            "chosen": token == chosen,
            "own": float(both[0][token]),
            "altered": None if altered is None else float(both[1][token]),
        }
        for token in shown
    ]


def _numbers(values: Tensor, digits: int = 4) -> Any:
    """Return numbers with so many significant digits, None where they are not finite, for JSON."""
    return _rounded(values.tolist(), digits)


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, Sequence):
        return [_rounded(each, digits) for each in value]
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None
