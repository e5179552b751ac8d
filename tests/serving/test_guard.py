"""Limits and headers of every request and response, by a real server."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from regard.serving.settings import Limits, ServerSettings
from tests.serving.live import running

LIMITS = Limits(body=2000, body_seconds=0.4, requests_per_minute=600)


@pytest.fixture(scope="module")
def address(translator_folder: Path) -> Iterator[str]:
    with running(ServerSettings([translator_folder], limits=LIMITS)) as address:
        yield address


def exchanged(address: str, *parts: bytes, pause: float = 0.0, seconds: float = 10.0) -> bytes:
    """Send the parts of a request, with a pause after each, and return what comes back until the connection ends."""
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), seconds) as connection:
        for part in parts:
            try:
                connection.sendall(part)
            except OSError:  # the server has answered, and closed the connection
                break
            time.sleep(pause)
        received = b""
        while more := connection.recv(65536):
            received += more
            if b"\r\n\r\n" in received and b"connection: close" not in received.lower():
                break
        return received


def test_every_response_has_the_headers(address: str) -> None:
    for path in ("/health", "/nothing", "/openapi.json"):
        response = requests.get(address + path, timeout=10)
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert "unsafe" not in response.headers["Content-Security-Policy"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["X-Frame-Options"] == "DENY"
        assert response.headers["Cache-Control"] == "no-store"
        assert "server" not in response.headers
    assert requests.get(f"{address}/nothing", timeout=10).json() == {"error": "Not Found"}
    assert requests.put(f"{address}/translate", timeout=10).status_code == 405


def test_a_foreign_host_is_refused(address: str) -> None:
    response = requests.get(f"{address}/languages", headers={"Host": "evil.example"}, timeout=10)
    assert response.status_code == 403 and "--allow-host" in response.json()["error"]


def test_large_bodies(address: str) -> None:
    refused = requests.post(f"{address}/translate", data=b"x" * 2001, timeout=10)
    assert refused.status_code == 413 and refused.json()["error"] == "body: expected at most 2,000 bytes"
    chunks = (b"x" * 500 for _ in range(100))
    assert requests.post(f"{address}/translate", data=chunks, timeout=10).status_code == 413
    assert requests.post(f"{address}/translate", data=b"x" * 1900, timeout=10).status_code == 400


def test_slow_bodies(address: str) -> None:
    head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
    received = exchanged(address, head, *[b"x"] * 8, pause=0.1)
    assert received.startswith(b"HTTP/1.1 408 ") and b"body: it did not come within 0.4 s" in received


def test_a_foreign_site_is_refused(address: str) -> None:
    response = requests.post(
        f"{address}/detect", data={"q": "a"}, headers={"Origin": "http://evil.example"}, timeout=10
    )
    assert response.status_code == 403 and "Access-Control-Allow-Origin" not in response.headers


def test_many_requests_of_one_client(translator_folder: Path) -> None:
    with running(ServerSettings([translator_folder], limits=Limits(requests_per_minute=3))) as address:
        codes = [requests.post(f"{address}/languages", timeout=10).status_code for _ in range(4)]
        assert codes == [200, 200, 200, 429]
        refused = requests.post(f"{address}/languages", timeout=10)
        assert 1 <= int(refused.headers["Retry-After"]) <= 21 and refused.json()["error"].startswith("slow down")
        assert requests.get(f"{address}/languages", timeout=10).status_code == 200


def test_metrics_count_requests(address: str) -> None:
    requests.get(f"{address}/no/such/route", timeout=10)
    requests.post(f"{address}/detect", data={"q": "The boy sees."}, timeout=10)
    text = requests.get(f"{address}/metrics", timeout=10).text
    assert 'regard_requests_total{route="/detect",method="POST",status="200"}' in text
    assert 'regard_requests_total{route="other",method="GET",status="404"}' in text and "no/such" not in text
    assert 'regard_request_seconds_bucket{route="/detect",le="+Inf"}' in text
    assert "regard_queue_length 0" in text and 'regard_model_loaded{model="toy"} 0' in text
