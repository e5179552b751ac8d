"""What the routes of a server share: its models and settings."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request

from regard.serving.access import KeyRule
from regard.serving.batching import Batcher
from regard.serving.compute import ComputeThread
from regard.serving.detection import LanguageDetector
from regard.serving.metrics import ServerMetrics
from regard.serving.settings import ServerSettings
from regard.serving.store import ModelStore


@dataclass(frozen=True)
class ServerState:
    """The models of a server, the thread in which they run, and the server's settings."""

    settings: ServerSettings
    compute: ComputeThread
    store: ModelStore
    keys: KeyRule
    metrics: ServerMetrics
    batcher: Batcher
    detector: LanguageDetector
    stopping: threading.Event = field(default_factory=threading.Event)
    """set when the server is to end: routes that send events for as long as somebody listens must return then"""

    @classmethod
    def of(cls, settings: ServerSettings) -> ServerState:
        """Return the state of a new server. A ValueError names a folder that holds no model."""
        limits, metrics = settings.limits, ServerMetrics()
        compute = ComputeThread(limits.waiting)
        store = ModelStore(settings.models, compute, settings.device, settings.precision)
        batcher = Batcher(metrics, limits.waiting, settings.max_batch)
        return cls(settings, compute, store, KeyRule(settings.keys), metrics, batcher, LanguageDetector(store))


async def server_state(request: Request) -> ServerState:
    """Return the state of the server that answers the request."""
    return cast(ServerState, request.app.state.server)


Server = Annotated[ServerState, Depends(server_state)]
"""the parameter by which a route gets the server's state"""
