"""The view Look: every head of an answer, evidence about its weights, and what other weights would have led to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from regard import samples
from regard.alignment.head_report import head_report
from regard.alignment.links import parse_gold
from regard.evidence.of_translation import examined, forced
from regard.look.page_data import of_traces
from regard.look.trace import Trace
from regard.serving.server import Server
from regard.serving.studio.requests import ModelName, check_length
from regard.tasks.translation.predictor import Translator

MAX_CHARACTERS = 2000  # of a text whose heads are all shown
SAMPLE_LANGUAGES = ("en", "mr")
EXAMPLES = 8  # of the sample's sentences with gold links

router = APIRouter(tags=["studio"])

Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]


class LookRequest(BaseModel):
    """A text whose translation is looked at."""

    model: ModelName = None
    text: Text
    target: Text | None = Field(None, description="A translation of one's own; none: the model translates.")
    gold: Text | None = Field(None, description="Links between the words of both, such as `0-0 1-2`.")


class AnswerRequest(BaseModel):
    """A sentence and its translation."""

    model: ModelName = None
    source: Text
    target: Text


class ForceRequest(AnswerRequest):
    """Where the model should have looked, by the places of words."""

    source_word: Annotated[int, Field(ge=0, le=MAX_CHARACTERS)]
    target_word: Annotated[int | None, Field(ge=0, le=MAX_CHARACTERS)] = None


@router.post("/look")
async def look(request: LookRequest, server: Server) -> dict[str, Any]:
    """Translate a text, and return all attention and a report on each head."""
    check_length("text", request.text, server.settings.limits)
    return await server.store.translator(request.model).call(lambda model: attention_of_text(model, request))


@router.post("/evidence")
async def evidence(request: AnswerRequest, server: Server) -> dict[str, Any]:
    """Return an answer with all the evidence about its weights."""
    return await server.store.translator(request.model).call(
        lambda model: {"content": of_traces([examined(model, answer_trace(model, request))])}
    )


@router.post("/force")
async def force(request: ForceRequest, server: Server) -> dict[str, Any]:
    """Return what the model would have said if it had attended to one source word."""
    return await server.store.translator(request.model).call(lambda model: forced_answer(model, request))


@router.get("/look-examples")
async def examples(server: Server, model: ModelName = None) -> list[dict[str, str]]:
    """List sentences with gold links, if there are any for the languages of the model."""
    return gold_examples() if server.store.translator(model).languages == SAMPLE_LANGUAGES else []


# From a translator to JSON


def attention_of_text(translator: Translator, request: LookRequest) -> dict[str, Any]:
    """Return {"content", "heads": the reports of each sentence, "notices"}."""
    notices: Sequence[str] = ()
    if request.target is not None:
        traces = translator.force_decode([request.text], [request.target])
    else:
        lines = [line for line in request.text.split("\n") if line.strip()]
        answers = translator.answers(lines, details=True)
        traces = [trace for answer in answers for trace in answer.translations[0].traces]
        notices = [notice for answer in answers for notice in answer.notices]
    gold = parse_gold(request.gold) if request.gold and len(traces) == 1 else None
    heads = [[asdict(report) for report in head_report(trace, gold)] for trace in traces]
    return {"content": of_traces(traces) if traces else None, "heads": heads, "notices": list(dict.fromkeys(notices))}


def answer_trace(translator: Translator, request: AnswerRequest) -> Trace:
    """Return the trace of a sentence and its translation."""
    (trace,) = translator.force_decode([request.source], [request.target])
    return trace


def forced_answer(translator: Translator, request: ForceRequest) -> dict[str, Any]:
    """Return {"before": log p of the answer with the model's own weights, "text", "log_probability"}."""
    trace = answer_trace(translator, request)
    result = forced(translator, trace, request.source_word, request.target_word)
    before = trace.candidates[0].log_probability
    return {"before": before, "text": result.text, "log_probability": result.log_probability}


def gold_examples() -> list[dict[str, str]]:
    """Return sentences of the sample with gold links between their words, as the studio's requests take them."""
    folder = samples.folder()
    columns = [(folder / name).read_text(encoding="utf-8").splitlines() for name in samples.LINKS]
    step = max(1, len(columns[0]) // EXAMPLES)
    rows = list(zip(*columns, strict=True))[::step][:EXAMPLES]
    return [{"text": _spaced(source), "target": _spaced(target), "gold": gold} for source, target, gold in rows]


def _spaced(tokens: str) -> str:
    """Return tokens as a text: no space before punctuation."""
    text = tokens
    for mark in (".", ",", "?", "!"):
        text = text.replace(f" {mark}", mark)
    return text
