"""What every request passes before a route sees it: checks, limits, and the headers of its response."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from regard.serving.access import KEY_COOKIE, SAFE_METHODS, HostRule, RateLimiter, check_origin, query_key
from regard.serving.compute import too_busy
from regard.serving.errors import RequestError, error_response
from regard.serving.server import ServerState

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
KEY_IN_BODY = frozenset(("/translate", "/translate_file", "/detect", "/suggest"))
"""routes that check the key themselves, because it may be in the body"""
WITHOUT_KEY = frozenset(("/health", "/languages", "/frontend/settings", "/spec", "/openapi.json"))
WITHOUT_KEY_UNDER = ("/assets/", "/download_file/")
DATA_ROUTES = frozenset(("/api/studio/training",))
"""routes that take the data of a training: as much as `Limits.data`"""
METHODS = frozenset(("GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"))
AUTHORIZED = "regard.authorized"  # in the scope: whether the request needs no key, or has one outside of its body
logger = logging.getLogger("uvicorn.error")


class Guard:
    """An ASGI middleware that lets a request through only if it is allowed and within the limits."""

    def __init__(self, app: Application, server: ServerState) -> None:
        self._app, self._server, self._limits = app, server, server.settings.limits
        self._hosts, self._rate = HostRule.of(server.settings), RateLimiter(server.settings.limits.requests_per_minute)
        self._origins = server.settings.allowed_origins
        self._active = self._bytes = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        began, response = time.perf_counter(), _Response(send, self._cors(scope))
        self._active += 1
        try:
            await self._answer(scope, receive, response)
        except RequestError as error:
            await self._refuse(error, scope, receive, response)
        except Exception:
            logger.exception("%s %s failed", scope["method"], scope["path"])
            await self._refuse(
                RequestError(500, "the server made a mistake; its log says which"), scope, receive, response
            )
        finally:
            self._active -= 1
            self._record(scope, response.status, time.perf_counter() - began)

    async def _answer(self, scope: MutableMapping[str, Any], receive: Receive, send: _Response) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self._hosts.check(headers)
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            check_origin(headers, self._origins)
            await send({"type": "http.response.start", "status": 204, "headers": _PREFLIGHT})
            await send({"type": "http.response.body", "body": b""})
            return
        if scope["method"] not in SAFE_METHODS:
            check_origin(headers, self._origins)
            self._rate.count(scope["client"][0] if scope.get("client") else "")
        if await self._unlocked(scope, headers, send):
            return
        if self._active > self._limits.waiting:
            raise too_busy()
        limit = self._limits.data if scope["path"] in DATA_ROUTES else self._limits.body
        body = await self._body(headers, receive, limit)
        check_unicode(body)
        self._bytes += len(body)
        try:
            await self._app(scope, _replayed(body, receive), send)
        finally:
            self._bytes -= len(body)

    async def _unlocked(self, scope: MutableMapping[str, Any], headers: dict[str, str], send: _Response) -> bool:
        """Check the API key. Return whether the request is answered: the page was opened with its key, which becomes a
        cookie."""
        keys, path, query = self._server.keys, scope["path"], scope["query_string"].decode("latin-1")
        scope[AUTHORIZED] = keys.allows(headers, query)
        if path == "/" and keys.required and self._server.settings.studio and keys.is_valid(query_key(query)):
            cookie = f"{KEY_COOKIE}={query_key(query)}; HttpOnly; SameSite=Strict; Path=/"
            redirect = [(b"location", b"/"), (b"set-cookie", cookie.encode("latin-1", "replace"))]
            await send({"type": "http.response.start", "status": 303, "headers": redirect})
            await send({"type": "http.response.body", "body": b""})
            return True
        is_open = path in WITHOUT_KEY or path in KEY_IN_BODY or path.startswith(WITHOUT_KEY_UNDER)
        if not scope[AUTHORIZED] and not is_open:
            raise missing_key()
        return False

    async def _body(self, headers: dict[str, str], receive: Receive, max_bytes: int) -> bytes:
        """Return the body of a request, within the limits of size and time."""
        length = headers.get("content-length", "0")
        if length == "0" and "transfer-encoding" not in headers:
            return b""
        parts: list[bytes] = []
        size = int(length) if length.isdecimal() else 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while size <= max_bytes:
                    if self._bytes + size > self._limits.bodies:
                        raise too_busy()
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestError(400, "the client disconnected")
                    parts.append(message.get("body", b""))
                    size = max(size, sum(map(len, parts)))
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            seconds = self._limits.body_seconds
            raise RequestError(408, f"body: it did not come within {seconds:g} s", {"Connection": "close"}) from None
        raise RequestError(413, f"body: expected at most {max_bytes:,} bytes", {"Connection": "close"})

    async def _refuse(
        self, error: RequestError, scope: MutableMapping[str, Any], receive: Receive, send: _Response
    ) -> None:
        if send.status is None:
            await error_response(error.status, error.message, error.headers)(scope, receive, send)

    def _cors(self, scope: MutableMapping[str, Any]) -> list[tuple[bytes, bytes]]:
        """Return the headers by which the page of an allowed origin may read the response."""
        if not self._origins:
            return []
        origin = next((value for name, value in scope["headers"] if name == b"origin"), None)
        if origin is None or not {"*", origin.decode("latin-1")} & self._origins:
            return []
        return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]

    def _record(self, scope: MutableMapping[str, Any], status: int | None, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._server.metrics.requests.add((route, method, str(status or 0)))
        self._server.metrics.seconds.observe(seconds, (route,))


_PREFLIGHT = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"Authorization, Content-Type, X-API-Key"),
    (b"access-control-max-age", b"600"),
]


class _Response:
    """Sends a response with further headers, and remembers its status."""

    def __init__(self, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        self._send, self._headers = send, headers
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = list(message.get("headers", ()))
            names = {name.lower() for name, _ in own}
            if b"cache-control" not in names:
                own.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*own, *HEADERS, *self._headers]}
        await self._send(message)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first gives the body that was read."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def check_unicode(body: bytes) -> None:
    """Raise a RequestError for JSON with half of a surrogate pair, which no response and no tokenizer can contain."""
    if b"\\ud" not in body and b"\\uD" not in body:
        return
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RequestError(400, "body: expected Unicode, got half of a surrogate pair") from None
    except (ValueError, RecursionError):  # not JSON: the route says so
        return


def missing_key() -> RequestError:
    """Return the error for a request without a valid API key."""
    return RequestError(403, "api_key: this server needs a valid key")
