"""What the routes of a server share: its models and settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from regard.serving.compute import ComputeThread
from regard.serving.settings import ServerSettings
from regard.serving.store import ModelStore


@dataclass(frozen=True)
class ServerState:
    """The models of a server, the thread in which they run, and the server's settings."""

    settings: ServerSettings
    compute: ComputeThread
    store: ModelStore


def server_state(request: Request) -> ServerState:
    """Return the state of the server that answers the request."""
    return cast(ServerState, request.app.state.server)


Server = Annotated[ServerState, Depends(server_state)]
"""the parameter by which a route gets the server's state"""
