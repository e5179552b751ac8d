"""Running the server: `regard serve`, `regard studio`."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.serving.app import create_app
from regard.serving.settings import ServerSettings

BACKLOG = 1024  # connections that the system holds until they are accepted
STOP_SECONDS = 60  # in which requests that are under way must end after SIGTERM
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class HttpServer(uvicorn.Server):
    """A server that ends with exit code 0 after SIGTERM or Ctrl-C, once what is under way is finished."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._stopping = app.state.server.stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._stopping.set()
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle signals while the server runs; uvicorn's own method raises them again at the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class TimedProtocol(H11Protocol):
    """A connection that is closed if the head of a request does not come in time."""

    seconds = 15.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(self.seconds, transport.close)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        waiting = self.cycle is None or self.cycle.response_complete
        if not waiting and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif waiting and self._timer is None:
            self._timer = self.loop.call_later(self.seconds, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; a ValueError says why that is not possible."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise ValueError(f"--host: expected a name or address of this machine, got {host!r}") from None
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise ValueError(f"--port: {port} is in use on {host}; expected a free one, or 0 for any") from None
        raise ValueError(f"--host, --port: cannot listen on {host}, port {port}: {error.strerror}") from None
    return listening


def http_server(settings: ServerSettings) -> HttpServer:
    """Return a server that is ready to run on a socket. A ValueError names a folder that holds no model."""
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        http=type("Protocol", (TimedProtocol,), {"seconds": settings.limits.body_seconds}),
        log_config=None,  # uvicorn's own would close the log handlers of this process
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=settings.behind_proxy,
        timeout_graceful_shutdown=STOP_SECONDS,
        ws="none",
    )
    return HttpServer(config, app)


def serve(settings: ServerSettings, ready: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that are under way are finished first.

    `ready` is called with the address when clients can connect.
    """
    server = http_server(settings)
    with listening_socket(settings.host, settings.port) as listening:
        name = f"[{settings.host}]" if ":" in settings.host else settings.host
        if ready is not None:
            ready(f"http://{name}:{listening.getsockname()[1]}/")
        server.run(sockets=[listening])
