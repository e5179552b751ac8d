"""What the views of the studio remember between requests: test sets, trainings, comparisons. All of it is bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, FastAPI, Request

from regard.experiments.compare.reading import read_comparison
from regard.serving.server import ServerState
from regard.serving.studio.comparisons import ServedComparison
from regard.serving.studio.corpus_jobs import CorpusJobs
from regard.serving.studio.trainings import Trainings


@dataclass(frozen=True)
class StudioState:
    """The state of the views of one server."""

    corpora: CorpusJobs
    trainings: Trainings
    comparisons: dict[str, ServedComparison]

    @classmethod
    def of(cls, server: ServerState) -> StudioState:
        """Return the state of a server that begins; the models of its comparisons are added to its store."""
        comparisons = {}
        for folder in server.settings.comparisons:
            served = ServedComparison.of(read_comparison(folder), server.store)
            comparisons[served.name] = served
        return cls(CorpusJobs(), Trainings(server.settings.work, server.store), comparisons)

    async def close(self) -> None:
        """End what is under way: a training with a checkpoint."""
        self.corpora.close()
        await self.trainings.close()


@asynccontextmanager
async def closing(app: FastAPI) -> AsyncIterator[None]:
    """End what is under way when the server ends."""
    yield
    await cast(StudioState, app.state.studio).close()


def studio_state(request: Request) -> StudioState:
    """Return the state of the studio that answers the request."""
    return cast(StudioState, request.app.state.studio)


Studio = Annotated[StudioState, Depends(studio_state)]
"""the parameter by which a route gets the state of the studio"""
