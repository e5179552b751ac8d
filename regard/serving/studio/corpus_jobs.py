"""Test sets that are translated in the background, a few sentences at a time."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal

from regard.look.diagnostics import MISSED, REPEATED
from regard.metrics.translation import Scores, score
from regard.runtime.processes import reason_of
from regard.serving.errors import RequestError
from regard.serving.store import ServedModel
from regard.serving.studio.corpus_rows import CorpusRow, corpus_rows

CHUNK = 16  # sentences that are translated at a time; other requests are answered in between
MAX_JOBS = 4  # test sets that a server remembers; the oldest is dropped

State = Literal["running", "done", "cancelled", "failed"]


@dataclass(eq=False)
class CorpusJob:
    """A test set, and as much of it as is translated."""

    name: str  # of the file
    model: ServedModel
    sources: Sequence[str]
    references: Sequence[Sequence[str]]
    confidence: bool  # whether the confidence of translations is computed
    id: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    rows: list[CorpusRow] = field(default_factory=list)
    state: State = "running"
    error: str | None = None
    scores: Scores | None = None  # of the whole test set, when it is translated
    task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Translate the test set."""
        try:
            for first in range(0, len(self.sources), CHUNK):
                self.rows += await self.model.call(partial(self._chunk, first=first))
            texts = [row.translation for row in self.rows]
            self.scores = await asyncio.to_thread(score, texts, self.references)
            self.state = "done"
        except asyncio.CancelledError:
            self.state = "cancelled"
        except Exception as error:
            self.state, self.error = "failed", reason_of(error)

    def _chunk(self, translator: Any, first: int) -> list[CorpusRow]:
        chunk = slice(first, first + CHUNK)
        answers = translator.answers(self.sources[chunk], confidence=self.confidence)
        return corpus_rows(first, answers, self.references[chunk])

    def cancel(self) -> None:
        """End the translation; the rows that are there stay."""
        if self.task is not None and self.state == "running":
            self.state = "cancelled"
            self.task.cancel()

    def describe(self, first: int) -> dict[str, Any]:
        """Return how far it is, and the rows from the one with number `first` on."""
        return {
            "id": self.id,
            "name": self.name,
            "model": self.model.name,
            "state": self.state,
            "error": self.error,
            "total": len(self.sources),
            "done": len(self.rows),
            "rows": [asdict(row) for row in self.rows[first:]],
            "scores": None if self.scores is None else self.scores.as_dict(),
            "thresholds": {"missed": MISSED, "repeated": REPEATED},
        }


class CorpusJobs:
    """The test sets that a server remembers."""

    def __init__(self) -> None:
        self._jobs: dict[str, CorpusJob] = {}

    def start(self, job: CorpusJob) -> None:
        """Begin to translate a test set; the oldest is dropped if there are too many."""
        while len(self._jobs) >= MAX_JOBS:
            self._jobs.pop(next(iter(self._jobs))).cancel()
        self._jobs[job.id] = job
        job.task = asyncio.get_running_loop().create_task(job.run())

    def get(self, name: str) -> CorpusJob:
        """Return a test set by its id; raise a RequestError if it was dropped."""
        if name not in self._jobs:
            raise RequestError(404, "corpus: this test set is not there any more; load it again")
        return self._jobs[name]

    def close(self) -> None:
        """End all translations."""
        for job in self._jobs.values():
            job.cancel()
