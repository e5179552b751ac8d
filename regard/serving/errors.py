"""Errors of requests: every one is answered with JSON, `{"error": "…"}`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException


class ErrorMessage(BaseModel):
    """What every error is answered with."""

    error: str


ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": ErrorMessage, "description": meaning}
    for code, meaning in {
        400: "A field is missing or wrong",
        403: "Not allowed: the API key, the Host, the Origin",
        404: "There is no such thing",
        405: "The route has other methods",
        408: "The body came too slowly",
        413: "Too much",
        422: "A field is wrong",
        429: "Too many requests; Retry-After says how long to wait",
        503: "Too many requests are waiting, or a model cannot be loaded",
    }.items()
}
"""what every route may be answered with, for the OpenAPI document"""


class RequestError(Exception):
    """A request that cannot be answered: the HTTP status, and a sentence for the client."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers


def error_response(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return the response for an error."""
    return JSONResponse({"error": message.encode("utf-8", "backslashreplace").decode()}, status, headers)


def add_error_handlers(app: FastAPI) -> None:
    """Let the app answer errors of requests in JSON. A ValueError is the client's mistake: its message names it."""

    @app.exception_handler(RequestError)
    async def answer_request_error(_: Request, error: RequestError) -> JSONResponse:
        return error_response(error.status, error.message, error.headers)

    @app.exception_handler(ValueError)
    async def answer_value_error(_: Request, error: ValueError) -> JSONResponse:
        return error_response(422, str(error))

    @app.exception_handler(HTTPException)
    async def answer_http_error(_: Request, error: HTTPException) -> JSONResponse:
        return error_response(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def answer_validation_error(_: Request, error: RequestValidationError) -> JSONResponse:
        return error_response(422, described(error.errors()))


def described(errors: Sequence[Any]) -> str:
    """Return the first of pydantic's errors as a sentence: where, what was expected."""
    first = errors[0]
    place = ".".join(str(each) for each in first["loc"][1:]) or "body"
    return f"{place}: {first['msg']}"
