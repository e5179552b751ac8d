"""The view Translate: translations while typing, what they attended to, and other ways to say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel, Field

from regard.look.diagnostics import MISSED, REPEATED, diagnose
from regard.look.page import page
from regard.look.page_data import of_traces
from regard.look.trace import AttentionWeights, Trace
from regard.serving.server import Server
from regard.serving.studio.requests import ModelName, TranslationOptions, check_length, interactive_search
from regard.tasks.translation.next_words import next_words
from regard.tasks.translation.predictor import Translator

MAX_SEGMENTS = 2000
MAX_ALTERNATIVES = 20

router = APIRouter(tags=["studio"])


class TranslateRequest(TranslationOptions):
    """A text to translate, line by line."""

    text: str
    details: bool = Field(False, description="With attention, probabilities, other hypotheses, coverage, confidence.")


class Segment(BaseModel):
    """A sentence, and how its translation begins or reads."""

    source: str
    prefix: str = ""
    target: str | None = Field(None, description="The whole translation; none: the model translates.")


class SegmentRequest(TranslationOptions, Segment):
    """A sentence to translate again."""


class NextWordsRequest(BaseModel):
    """A sentence, and the part of its translation after which other words are asked for."""

    model: ModelName = None
    source: str
    prefix: str = ""
    known: str = Field("", description="A translation that begins with the prefix; its next word is listed, too.")
    count: Annotated[int, Field(ge=1, le=MAX_ALTERNATIVES)] = 8


class ShareRequest(TranslationOptions):
    """Sentences with their translations, to be written as a page of its own."""

    segments: Annotated[list[Segment], Field(min_length=1, max_length=MAX_SEGMENTS)]


@router.post("/translate")
async def translate(request: TranslateRequest, server: Server) -> dict[str, Any]:
    """Translate a text, line by line."""
    check_length("text", request.text, server.settings.limits)
    return await server.store.translator(request.model).call(lambda model: translated_lines(model, request))


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


def translated_lines(translator: Translator, request: TranslateRequest) -> dict[str, Any]:
    """Return {"lines": [{"text"}, …], "notices"}; with details also `with_details` of all sentences, and for each line
    its number of sentences and its confidence."""
    lines = request.text.split("\n")
    search, rated = interactive_search(translator), request.details and "confidence" in translator.card
    answers = translator.answers(
        lines, search, details=request.details, glossary=request.terms, confidence=rated, keep=request.kept
    )
    notices = list(dict.fromkeys(notice for answer in answers for notice in answer.notices))
    if not request.details:
        return {"lines": [{"text": answer.text} for answer in answers], "notices": notices}
    best = [answer.translations[0] for answer in answers]
    described = [{"text": each.text, "segments": len(each.traces), "confidence": each.confidence} for each in best]
    return {"lines": described, "notices": notices} | with_details([trace for each in best for trace in each.traces])


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


def translated_segment(translator: Translator, segment: Segment, options: TranslationOptions) -> dict[str, Any]:
    """Return {"text"} and `with_details` of a sentence."""
    text, traces = segment_traces(translator, segment, options)
    return {"text": text} | with_details(traces)


def segment_traces(
    translator: Translator, segment: Segment, options: TranslationOptions
) -> tuple[str, Sequence[Trace]]:
    """Return the translation of a sentence with its traces: the given one, or the best that begins with the prefix."""
    if segment.target is not None:
        return segment.target, translator.force_decode([segment.source], [segment.target])
    (answer,) = translator.answers(
        [segment.source],
        interactive_search(translator),
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
