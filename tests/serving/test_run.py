"""`regard serve` as a process: its start, its address, and its end."""

from __future__ import annotations

import io
import json
import logging
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from regard.serving.run import TimedProtocol, http_server, listening_socket
from regard.serving.settings import Limits, ServerSettings
from tests.serving.live import running


@contextmanager
def process(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `regard ARGUMENTS --port 0`, and return it with its address."""
    command = [sys.executable, "-m", "regard", *map(str, arguments), "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        line = server.stderr.readline()
        address = re.fullmatch(r"regard: (http://127\.0\.0\.1:\d+)/\n", line)
        assert address, line + server.stderr.read()
        yield server, address[1]
    finally:
        server.kill()
        server.communicate()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_what_is_under_way_is_finished(ending: signal.Signals, translator_folder: Path) -> None:
    with process("serve" if ending is signal.SIGTERM else "studio", translator_folder) as (server, address):
        asked = json.dumps({"q": "The boy sees a mango.", "source": "en", "target": "mr"}).encode()
        head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 60) as connection:
            connection.sendall(head + b"%d\r\n\r\n" % len(asked) + asked[:20])
            assert requests.get(f"{address}/health", timeout=30).json() == {"status": "ok"}
            server.send_signal(ending)
            end = time.monotonic() + 30
            while accepts(host, int(port)):
                assert time.monotonic() < end, "the server still accepts connections"
                time.sleep(0.05)
            connection.sendall(asked[20:])
            received = b""
            while more := connection.recv(65536):
                received += more
        assert received.startswith(b"HTTP/1.1 200") and b"translatedText" in received
        assert server.wait(30) == 0
        assert server.stderr is not None and server.stderr.read() == ""


def accepts(host: str, port: int) -> bool:
    """Whether a server listens on a port."""
    try:
        socket.create_connection((host, port), 10).close()
    except ConnectionError:
        return False
    return True


def test_a_port_in_use() -> None:
    with listening_socket("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(
            ValueError, match=f"--port: {port} is in use on 127.0.0.1; expected a free one, or 0 for any"
        ):
            listening_socket("127.0.0.1", port)
    with pytest.raises(ValueError, match="--host: expected a name or address of this machine, got 'no such host'"):
        listening_socket("no such host", 0)


def test_a_head_that_does_not_come_ends_the_connection(translator_folder: Path) -> None:
    assert TimedProtocol.seconds == 15
    with running(ServerSettings([translator_folder], limits=Limits(body_seconds=0.3))) as address:
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 10) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
            began = time.monotonic()
            assert connection.recv(100) == b""
            assert 0.2 < time.monotonic() - began < 5
        with socket.create_connection((host, int(port)), 10) as connection:
            for _ in range(3):  # a connection that is used goes on
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                received = b""
                while not received.endswith(b"}"):
                    received += connection.recv(4096)
                assert received.startswith(b"HTTP/1.1 200")
                time.sleep(0.15)


def test_models_leave_memory(translator_folder: Path) -> None:
    with running(ServerSettings([translator_folder], keep_loaded=0.2)) as address:
        asked = {"q": "Rahul buys a house.", "source": "en", "target": "mr"}
        assert requests.post(f"{address}/translate", json=asked, timeout=30).status_code == 200
        end = time.monotonic() + 20
        while requests.get(f"{address}/api/models", timeout=30).json()[0]["loaded"]:
            assert time.monotonic() < end, "the model stays in memory"
            time.sleep(0.05)
        assert requests.post(f"{address}/translate", json=asked, timeout=30).status_code == 200


def test_log_handlers_of_the_process_stay_open() -> None:
    class ClosingHandler(logging.StreamHandler[io.StringIO]):
        def close(self) -> None:
            self.stream.close()
            super().close()

    handler = ClosingHandler(io.StringIO())
    http_server(ServerSettings([]))
    assert not handler.stream.closed
