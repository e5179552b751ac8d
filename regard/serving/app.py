"""The server as an ASGI application: `create_app(settings)`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

from regard.runtime.version import __version__
from regard.serving.compute import ComputeThread
from regard.serving.errors import add_error_handlers
from regard.serving.server import Server, ServerState
from regard.serving.settings import ServerSettings
from regard.serving.store import ModelStore
from regard.serving.studio import routes as studio


def create_app(settings: ServerSettings) -> FastAPI:
    """Return the server for some models. A ValueError names a folder that holds no model."""
    compute = ComputeThread()
    state = ServerState(settings, compute, ModelStore(settings.models, compute, settings.device, settings.precision))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        compute.close()

    # FastAPI's pages of documentation load scripts from elsewhere: off.
    app = FastAPI(title="Regard", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.server = state
    add_error_handlers(app)

    @app.get("/api/models")
    async def models(server: Server) -> list[dict[str, Any]]:
        """List the models."""
        return [model.describe() for model in server.store]

    if settings.studio:
        studio.add_to(app)
    return app
