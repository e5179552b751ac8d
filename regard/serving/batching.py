"""Requests for translations, put together on the way to the model.

While the model is idle, a request starts at once. While it computes, requests collect, and the next computation takes
as many of them as fit: under load the batches are large, and nobody waits for a timer. A request with many texts takes
part in several computations, between which others get their turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from regard.serving.compute import too_busy
from regard.serving.errors import RequestError
from regard.serving.metrics import ServerMetrics
from regard.serving.store import ServedModel
from regard.tasks.translation.answer import Answer
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from regard.text.glossary import Glossary
from regard.text.placeables import Part, joined

CLIENT_CLOSED_REQUEST = 499  # the status, as nginx has it, of a request whose client does not wait any more
MAX_BATCH_CHARACTERS = 16_000  # of the texts of one computation, if they are several


@dataclass(frozen=True)
class JobOptions:
    """What requests must have in common to be translated together."""

    beam: int | None = None  # None: the model's own
    n_best: int = 1
    prefix: str = ""
    details: bool = False
    confidence: bool = False
    has_terms: bool = False  # with a glossary, which may be another one for each request

    def search(self, defaults: Search) -> Search:
        """Return the options of the search; `defaults`: those of the model."""
        beam = max(self.beam or defaults.beam, self.n_best)
        plain = self.has_terms or self.beam is not None
        return replace(defaults, beam=beam, n_best=self.n_best, mbr=0 if plain else defaults.mbr)


async def _never() -> bool:
    return False


@dataclass(eq=False)
class TranslationJob:
    """The texts of a request, and what is made of their answers once all are there."""

    model: ServedModel
    texts: Sequence[Sequence[Part]]
    options: JobOptions
    finish: Callable[[list[Answer]], Any]  # runs in the compute thread
    glossary: Glossary | None = None
    is_gone: Callable[[], Awaitable[bool]] = _never  # whether the client has disconnected
    answers: list[Answer] = field(default_factory=list)
    result: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def part(self, max_texts: int, max_characters: int) -> list[Sequence[Part]]:
        """Return the next texts that fit; maybe none."""
        chosen: list[Sequence[Part]] = []
        for text in self.texts[len(self.answers) : len(self.answers) + max_texts]:
            max_characters -= len(joined(text))
            if max_characters < 0:
                break
            chosen.append(text)
        return chosen


Batch = list[tuple[TranslationJob, list[Sequence[Part]]]]


class Batcher:
    """Collects jobs and translates those that are alike together."""

    def __init__(self, metrics: ServerMetrics, max_waiting: int, max_batch: int) -> None:
        self._metrics, self._max_waiting, self._max_batch = metrics, max_waiting, max_batch
        self._waiting: deque[TranslationJob] = deque()
        self._worker: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    async def run(self, job: TranslationJob) -> Any:
        """Return what the job makes of its answers; raise a RequestError if too many are waiting."""
        if not job.texts:
            return job.finish([])
        if len(self._waiting) >= self._max_waiting:
            raise too_busy()
        self._waiting.append(job)
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._work())
        return await job.result

    async def _work(self) -> None:
        while self._waiting:
            batch = await self._next_batch()
            if batch:
                await self._translate(batch)
        self._worker = None

    async def _next_batch(self) -> Batch:
        """Take the first job that waits, and further ones like it, as far as they fit."""
        batch: Batch = []
        others: list[TranslationJob] = []
        texts, characters = self._max_batch, MAX_BATCH_CHARACTERS
        while self._waiting and texts > 0:
            job = self._waiting.popleft()
            if job.result.done():  # cancelled
                continue
            if batch and (job.model is not batch[0][0].model or job.options != batch[0][0].options):
                others.append(job)
                continue
            if not job.answers and await job.is_gone():
                self._metrics.dropped.add()
                job.result.set_exception(RequestError(CLIENT_CLOSED_REQUEST, "the client has disconnected"))
                continue
            part = job.part(texts, characters)
            if not part and batch:
                others.append(job)
                break
            part = part or [job.texts[len(job.answers)]]  # one that alone is too long
            batch.append((job, part))
            texts -= len(part)
            characters -= sum(len(joined(text)) for text in part)
        self._waiting.extendleft(reversed(others))
        return batch

    async def _translate(self, batch: Batch) -> None:
        """Translate a batch; if that fails, each of its jobs by itself, so that one does not spoil the others."""
        model = batch[0][0].model
        try:
            outcomes = await model.call(lambda translator: _computed(translator, batch))
        except Exception as error:
            if len(batch) == 1:
                _settle(batch[0][0], error)
            else:
                for each in batch:
                    await self._translate([each])
            return
        self._record(model.name, batch)
        for (job, _), outcome in zip(batch, outcomes, strict=True):
            if len(job.answers) == len(job.texts):
                _settle(job, outcome)
            else:
                self._waiting.append(job)

    def _record(self, model: str, batch: Batch) -> None:
        metrics = self._metrics
        metrics.batches.observe(sum(len(part) for _, part in batch), (model,))
        for job, part in batch:
            answers = job.answers[len(job.answers) - len(part) :]
            traces = [trace for answer in answers for trace in answer.translations[0].traces]
            metrics.characters.add((model,), sum(len(joined(text)) for text in part))
            metrics.tokens.add((model, "source"), sum(len(trace.source.pieces) for trace in traces))
            metrics.tokens.add((model, "target"), sum(len(trace.target.pieces) for trace in traces))


def _computed(translator: Translator, batch: Batch) -> list[Any]:
    """Return the results, or errors, of the jobs of a batch that are complete now, and None for the others."""
    options = batch[0][0].options
    texts = [text for _, part in batch for text in part]
    glossaries = [job.glossary for job, part in batch for _ in part] if options.has_terms else None
    answers = iter(
        translator.answers_of_parts(
            texts, options.search(translator.search), options.prefix, options.details, glossaries, options.confidence
        )
    )
    outcomes: list[Any] = []
    for job, part in batch:
        job.answers += [next(answers) for _ in part]
        outcomes.append(_finished(job) if len(job.answers) == len(job.texts) else None)
    return outcomes


def _finished(job: TranslationJob) -> Any:
    try:
        return job.finish(job.answers)
    except Exception as error:
        return error


def _settle(job: TranslationJob, outcome: Any) -> None:
    """Hand the outcome to who waits for it, unless nobody does any more."""
    if job.result.done():
        return
    if isinstance(outcome, Exception):
        job.result.set_exception(outcome)
    else:
        job.result.set_result(outcome)
