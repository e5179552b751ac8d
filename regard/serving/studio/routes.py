"""The routes of the page: its files, and one router for each view."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter, FastAPI
from fastapi.responses import Response

from regard.look.page import palette
from regard.serving.errors import RequestError
from regard.serving.studio import classify, compare, corpus, learn, look, patterns, training, translate
from regard.serving.studio.state import StudioState

VIEWS: tuple[APIRouter, ...] = (
    translate.router,
    look.router,
    learn.router,
    compare.router,
    corpus.router,
    training.router,
    classify.router,
    patterns.router,
)
"""the routers of the views; their paths begin with /api/studio/"""

ASSETS = {"studio": "regard.serving.studio", "look": "regard.look", "compare": "regard.experiments.compare"}
"""the first part of an asset's path → the package in whose folder `assets` it is"""

TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
}


def add_to(app: FastAPI) -> None:
    """Add the page and the routes of its views to a server."""
    app.state.studio = StudioState.of(app.state.server)
    for view in VIEWS:
        app.include_router(view, prefix="/api/studio")

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        """Return the page."""
        return asset_response("studio", "index.html")

    @app.get("/assets/look/palette.css", include_in_schema=False)
    async def colours() -> Response:
        """Return the colours of all views."""
        return Response(palette(), media_type=TYPES[".css"], headers={"Cache-Control": "no-cache"})

    @app.get("/assets/{package}/{path:path}", include_in_schema=False)
    async def asset(package: str, path: str) -> Response:
        """Return a script or style of the page."""
        return asset_response(package, path)


def asset_response(package: str, path: str) -> Response:
    """Return a file of the folder `assets` of a package; raise a RequestError if there is none."""
    ending = path[path.rfind(".") :]
    parts = path.split("/")
    if package not in ASSETS or ending not in TYPES or any(part in ("", ".", "..") for part in parts):
        raise RequestError(404, f"/assets/{package}/{path}: there is no such file")
    file = files(ASSETS[package]).joinpath("assets", *parts)
    if not file.is_file():
        raise RequestError(404, f"/assets/{package}/{path}: there is no such file")
    return Response(file.read_bytes(), media_type=TYPES[ending], headers={"Cache-Control": "no-cache"})
