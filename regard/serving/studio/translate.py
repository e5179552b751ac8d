"""The view Translate: translations while typing, what they attended to, and other ways to say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, cast

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from regard.look.diagnostics import MISSED, REPEATED, diagnose
from regard.look.page import page
from regard.look.page_data import of_traces
from regard.look.trace import AttentionWeights, Trace
from regard.serving.batching import JobOptions, TranslationJob
from regard.serving.server import Server
from regard.serving.studio.requests import InteractiveOptions, ModelName, check_length
from regard.tasks.translation.answer import Answer
from regard.tasks.translation.next_words import next_words
from regard.tasks.translation.predictor import Translator
from regard.text.placeables import Part

MAX_SEGMENTS = 2000
MAX_ALTERNATIVES = 20

router = APIRouter(tags=["studio"])


class TextRequest(InteractiveOptions):
    """A text to translate, line by line."""

    text: str
    details: bool = Field(False, description="With attention, probabilities, other hypotheses, coverage, confidence.")

    @property
    def parts(self) -> list[list[Part]]:
        """each line as its parts: what is translated, and what is not"""
        keep = self.kept
        return [[line] if keep is None else keep.parts(line) for line in self.text.split("\n")]


class Segment(BaseModel):
    """A sentence, and how its translation begins or reads."""

    source: str
    prefix: str = ""
    target: str | None = Field(None, description="The whole translation; none: the model translates.")


class SegmentRequest(InteractiveOptions, Segment):
    """A sentence to translate again."""


class NextWordsRequest(BaseModel):
    """A sentence, and the part of its translation after which other words are asked for."""

    model: ModelName = None
    source: str
    prefix: str = ""
    known: str = Field("", description="A translation that begins with the prefix; its next word is listed, too.")
    count: Annotated[int, Field(ge=1, le=MAX_ALTERNATIVES)] = 8


class ShareRequest(InteractiveOptions):
    """Sentences with their translations, to be written as a page of its own."""

    segments: Annotated[list[Segment], Field(min_length=1, max_length=MAX_SEGMENTS)]


@router.post("/translate")
async def translate(request: TextRequest, server: Server, http: Request) -> dict[str, Any]:
    """Translate a text, line by line."""
    check_length("text", request.text, server.settings.limits)
    model = server.store.translator(request.model)
    confidence = request.details and "confidence" in model.card
    options = JobOptions(details=request.details, confidence=confidence, has_terms=bool(request.glossary))
    finish = described if request.details else plain
    job = TranslationJob(model, request.parts, options, finish, request.terms, http.is_disconnected)
    return cast(dict[str, Any], await server.batcher.run(job))


@router.post("/segment")
async def segment(request: SegmentRequest, server: Server) -> dict[str, Any]:
    """Translate one sentence with details: from a prefix, or by a given translation."""
    _check_segments([request], server)
    return await server.store.translator(request.model).call(lambda model: translated_segment(model, request, request))


@router.post("/next-words")
async def words(request: NextWordsRequest, server: Server) -> list[dict[str, Any]]:
    """List the words with which a translation can go on, with their probabilities."""
    check_length("source", request.source, server.settings.limits)
    check_length("prefix", request.prefix, server.settings.limits)
    check_length("known", request.known, server.settings.limits)
    chosen = server.store.translator(request.model)
    asked = request.source, request.prefix, request.count, request.known
    listed = await chosen.call(lambda model: next_words(model, *asked))
    return [asdict(each) for each in listed]


@router.post("/share")
async def share(request: ShareRequest, server: Server) -> Response:
    """Return a self-contained HTML page of the translations and what they attended to."""
    _check_segments(request.segments, server)
    text = await server.store.translator(request.model).call(lambda model: shared_page(model, request))
    headers = {"Content-Disposition": 'attachment; filename="translation.html"'}
    return Response(text, media_type="text/html; charset=utf-8", headers=headers)


def _check_segments(segments: Sequence[Segment], server: Server) -> None:
    check_length("segments", "".join(each.source for each in segments), server.settings.limits)
    for each in segments:
        check_length("prefix", each.prefix, server.settings.limits)
        check_length("target", each.target or "", server.settings.limits)


# From a translator to JSON


def plain(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return {"lines": [{"text"}, …], "notices"} of the answers for the lines of a text."""
    notices = dict.fromkeys(notice for answer in answers for notice in answer.notices)
    return {"lines": [{"text": answer.text} for answer in answers], "notices": list(notices)}


def described(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return `plain` of the answers, `with_details` of all their sentences, and for each line how many it has."""
    best = [answer.translations[0] for answer in answers]
    lines = [{"text": each.text, "segments": len(each.traces), "confidence": each.confidence} for each in best]
    return plain(answers) | {"lines": lines} | with_details([trace for each in best for trace in each.traces])


def with_details(traces: Sequence[Trace]) -> dict[str, Any]:
    """Return {"content": the explorer's content of the traces with their mean attention, "coverage"}."""
    return {"content": of_traces([_mean_attention(trace) for trace in traces]), "coverage": [*map(coverage, traces)]}


def coverage(trace: Trace) -> dict[str, list[int]]:
    """Return which source words were likely left out or translated several times, by their places."""
    result = diagnose(trace)
    words = [word.text for word in trace.source.words]
    pairs = list(enumerate(zip(words, result.coverage, strict=True)))
    return {
        "missed": [place for place, (word, value) in pairs if word in result.missed and value < MISSED],
        "repeated": [place for place, (word, value) in pairs if word in result.repeated and value > REPEATED],
    }


def translated_segment(translator: Translator, segment: Segment, options: InteractiveOptions) -> dict[str, Any]:
    """Return {"text"} and `with_details` of a sentence."""
    text, traces = segment_traces(translator, segment, options)
    return {"text": text} | with_details(traces)


def segment_traces(
    translator: Translator, segment: Segment, options: InteractiveOptions
) -> tuple[str, Sequence[Trace]]:
    """Return the translation of a sentence with its traces: the given one, or the best that begins with the prefix."""
    if segment.target is not None:
        return segment.target, translator.force_decode([segment.source], [segment.target])
    (answer,) = translator.answers(
        [segment.source],
        options.search(translator),
        segment.prefix,
        details=True,
        glossary=options.terms,
        confidence="confidence" in translator.card,
        keep=options.kept,
    )
    return answer.text, answer.translations[0].traces


def shared_page(translator: Translator, request: ShareRequest) -> str:
    """Return the HTML page of sentences."""
    traces = [trace for each in request.segments for trace in segment_traces(translator, each, request)[1]]
    if not traces:
        raise ValueError("segments: expected text to translate, got none")
    return page(traces)


def _mean_attention(trace: Trace) -> Trace:
    """Return the trace with the mean attention from target to source alone: a tenth of the size with many heads."""
    return replace(trace, attentions=[AttentionWeights("cross", trace.weights[None, None])])
