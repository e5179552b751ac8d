"""The server as an ASGI application: `create_app(settings)`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from regard.runtime.heap import trim_heap
from regard.runtime.version import __version__
from regard.serving import api
from regard.serving.errors import ERRORS, add_error_handlers
from regard.serving.guard import Guard
from regard.serving.libre import routes as libre
from regard.serving.server import ServerState
from regard.serving.settings import ServerSettings
from regard.serving.studio import routes as studio

CHECK_SECONDS = 10.0  # between two looks for models that are not used any more


def create_app(settings: ServerSettings) -> FastAPI:
    """Return the server for some models. A ValueError names a folder that holds no model."""
    state = ServerState.of(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        unloading = asyncio.create_task(_unload_unused(state))
        yield
        unloading.cancel()
        state.compute.close()

    # FastAPI's pages of documentation load scripts from elsewhere: off.
    app = FastAPI(
        title="Regard", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan, responses=ERRORS
    )
    app.state.server = state
    add_error_handlers(app)
    app.include_router(api.router)
    libre.add_to(app, state)
    if settings.studio:
        studio.add_to(app)
    app.add_middleware(Guard, server=state)
    return app


async def _unload_unused(server: ServerState) -> None:
    """Release models that were not used for a while, and memory that nothing uses."""
    seconds = server.settings.keep_loaded
    while seconds is not None:
        await asyncio.sleep(min(CHECK_SECONDS, max(seconds / 4, 0.01)))
        if server.store.unload_unused(seconds):
            await server.compute.run(trim_heap)
