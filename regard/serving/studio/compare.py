"""The view Compare: two models on one sentence, and the tables of `regard compare`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from regard.look.page_data import of_traces
from regard.look.trace import Trace
from regard.serving.errors import RequestError
from regard.serving.server import Server
from regard.serving.studio.state import Studio
from regard.tasks.translation.predictor import Translator
from regard.text.normal import tidy

MAX_CHARACTERS = 1_000  # of a sentence: the pictures of two models stand side by side

router = APIRouter(tags=["compare"])


class CompareRequest(BaseModel):
    """A sentence, and the two models that translate it."""

    text: str = Field(min_length=1, max_length=MAX_CHARACTERS)
    models: list[str] = Field(min_length=2, max_length=2)
    target: str = Field("", max_length=MAX_CHARACTERS, description="a translation of your own that both models rate")


@dataclass(frozen=True)
class RatedTarget:
    """A translation, and how both models read it."""

    text: str
    by: int | None  # the model that translated so: 0 or 1; None: it was given
    traces: Sequence[Trace]

    def as_dict(self) -> dict[str, Any]:
        log_probs = [trace.candidates[0].log_probability for trace in self.traces]
        return {
            "text": self.text,
            "by": self.by,
            "log_probabilities": [round(value, 4) for value in log_probs],
            "comparable": have_same_words(*self.traces),
        }


def have_same_words(one: Trace, other: Trace) -> bool:
    """Return whether the weights of two traces can be subtracted: both have the same words on both sides."""
    return [word.text for word in one.source.words] == [word.text for word in other.source.words] and [
        word.text for word in one.target.words
    ] == [word.text for word in other.target.words]


@router.post("/compare")
async def compare(server: Server, request: CompareRequest) -> dict[str, Any]:
    """Translate a sentence with two models, and let each read the translations of both by forced decoding."""
    models = [server.store.translator(name) for name in request.models]
    source, given = tidy(request.text), tidy(request.target)
    if not source:
        raise ValueError("text: expected a sentence, got nothing but blanks")
    texts = [await model.call(lambda translator: _translated(translator, source)) for model in models]
    targets: list[tuple[str, int | None]] = [(text, by) for by, text in enumerate(texts)]
    if given:
        targets.append((given, None))
    forced = [
        await model.call(lambda translator: _forced(translator, source, [text for text, _ in targets]))
        for model in models
    ]
    rated = [
        RatedTarget(text, by, traces) for (text, by), traces in zip(targets, zip(*forced, strict=True), strict=True)
    ]
    return {
        "source": source,
        "models": [model.name for model in models],
        "targets": [each.as_dict() for each in rated],
        "content": of_traces([trace for each in rated for trace in each.traces]),
    }


def _translated(translator: Translator, source: str) -> str:
    return translator.translate(source)


def _forced(translator: Translator, source: str, targets: Sequence[str]) -> list[Trace]:
    return translator.force_decode([source] * len(targets), targets)


@router.get("/comparisons")
async def comparisons(studio: Studio) -> list[str]:
    """List the comparisons of `regard compare` that this server shows."""
    return list(studio.comparisons)


@router.get("/comparisons/{name}")
async def comparison(studio: Studio, name: str) -> dict[str, Any]:
    """Return the results of a comparison."""
    if name not in studio.comparisons:
        raise RequestError(404, f"comparison: there is none of the name {name!r}")
    return await asyncio.to_thread(studio.comparisons[name].content)
