"""The view Corpus: a test set is translated, and its sentences are sorted by what is odd about them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, UploadFile

from regard.look.page_data import of_traces
from regard.metrics.translation import group
from regard.serving.errors import RequestError
from regard.serving.server import Server
from regard.serving.studio.corpus_jobs import CorpusJob
from regard.serving.studio.requests import check_length
from regard.serving.studio.state import Studio
from regard.serving.studio.uploads import read_uploaded_pairs, safe_name

MAX_LINES = 5_000  # of a test set

router = APIRouter(tags=["corpus"])


@router.post("/corpus", status_code=202)
async def load_corpus(
    server: Server,
    studio: Studio,
    files: Annotated[list[UploadFile], File(description="a .tsv or .jsonl, or two parallel texts; also .gz")],
    model: Annotated[str | None, Form()] = None,
    reverse: Annotated[bool, Form(description="translate from the second column to the first")] = False,
    confidence: Annotated[bool, Form(description="also compute the confidence of each translation")] = True,
) -> dict[str, Any]:
    """Read a test set and begin to translate it."""
    translator = server.store.translator(model)
    pairs = await read_uploaded_pairs(files, MAX_LINES, reverse, None if reverse else translator.languages)
    sources, references = group(pairs)
    for source in sources:
        check_length("source", source, server.settings.limits)
    name = " + ".join(safe_name(file.filename) for file in files)
    rated = confidence and "confidence" in translator.card
    job = CorpusJob(name, translator, sources, references, rated)
    studio.corpora.start(job)
    return job.describe(0)


@router.get("/corpus/{job}")
async def corpus(studio: Studio, job: str, first: Annotated[int, Query(ge=0)] = 0) -> dict[str, Any]:
    """Return how far a test set is translated, and its rows from the one with number `first` on."""
    return studio.corpora.get(job).describe(first)


@router.post("/corpus/{job}/cancel")
async def cancel_corpus(studio: Studio, job: str) -> dict[str, Any]:
    """End the translation of a test set; what is translated stays."""
    chosen = studio.corpora.get(job)
    chosen.cancel()
    return chosen.describe(len(chosen.rows))


@router.get("/corpus/{job}/rows/{number}")
async def corpus_row(studio: Studio, job: str, number: int) -> dict[str, Any]:
    """Return the traces of a sentence of a test set, as the content of an explorer; null if it has no text."""
    chosen = studio.corpora.get(job)
    if not 0 <= number < len(chosen.sources):
        raise RequestError(404, f"row: expected a number from 0 to {len(chosen.sources) - 1}, got {number}")

    def traced(translator: Any) -> dict[str, Any] | None:
        (answer,) = translator.answers([chosen.sources[number]], details=True, confidence=chosen.confidence)
        traces = answer.translations[0].traces
        return of_traces(traces) if traces else None

    return {"number": number, "content": await chosen.model.call(traced)}
