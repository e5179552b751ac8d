"""Who may use a server."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from regard.serving import access
from regard.serving.access import HostRule, KeyRule, RateLimiter, check_origin, is_loopback
from regard.serving.app import create_app
from regard.serving.errors import RequestError
from regard.serving.settings import ServerSettings

KEY = "a-secret-key"


@pytest.mark.parametrize(
    ("bound", "given", "allowed"),
    [
        ("127.0.0.1", "localhost:8080", True),
        ("127.0.0.1", "LOCALHOST", True),
        ("127.0.0.1", "localhost.", True),
        ("127.0.0.1", "127.0.0.1:1", True),
        ("127.0.0.1", "[::1]:8080", True),
        ("127.0.0.1", "allowed.example", True),
        ("127.0.0.1", "evil.example", False),
        ("127.0.0.1", "localhost.evil.example", False),
        ("127.0.0.1", "127.0.0.1.nip.io", False),
        ("127.0.0.1", "localhost@evil.example", False),
        ("127.0.0.1", "localhost:x", False),
        ("127.0.0.1", "192.168.1.7", False),
        ("127.0.0.1", "", False),
        ("0.0.0.0", "192.168.1.7:8080", True),
        ("0.0.0.0", "[fe80::1]", True),
        ("0.0.0.0", "evil.example", False),
        ("here.example", "here.example", True),
        ("::1", "[::1]", True),
    ],
)
def test_hosts(bound: str, given: str, allowed: bool) -> None:
    rule = HostRule.of(ServerSettings([], host=bound, allowed_hosts=frozenset(("Allowed.example",))))
    if allowed:
        rule.check({"host": given})
        return
    with pytest.raises(RequestError, match="--allow-host allows it"):
        rule.check({"host": given})


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        (None, True),
        ("http://localhost:8080", True),
        ("https://localhost:8080", True),
        ("https://friend.example", True),
        ("http://localhost:9999", False),
        ("http://evil.example", False),
        ("null", False),
        ("http://[", False),
        ("file://localhost:8080", False),
    ],
)
def test_origins(origin: str | None, allowed: bool) -> None:
    headers = {"host": "localhost:8080"} | ({} if origin is None else {"origin": origin})
    if allowed:
        check_origin(headers, frozenset(("https://friend.example",)))
        return
    with pytest.raises(RequestError, match="--allow-origin allows it"):
        check_origin(headers, frozenset(("https://friend.example",)))


def test_keys() -> None:
    rule = KeyRule(frozenset((KEY, "another-key")))
    assert rule.is_valid(KEY) and not rule.is_valid("") and not rule.is_valid(None) and not rule.is_valid(["x"])
    assert not rule.allows({}, "")
    for headers in ({"authorization": f"Bearer {KEY}"}, {"x-api-key": KEY}, {"cookie": f"a=b; regard_key={KEY}"}):
        assert rule.allows(headers, "")
    assert rule.allows({}, "q=a&api_key=another-key") and not rule.allows({"cookie": "\x00;;="}, "api_key=x")
    assert KeyRule(frozenset()).allows({}, "")


def test_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    limiter = RateLimiter(6)
    for _ in range(6):
        limiter.count("a")
    with pytest.raises(RequestError, match="at most 6 requests a minute") as error:
        limiter.count("a")
    assert error.value.status == 429 and error.value.headers == {"Retry-After": "11"}
    limiter.count("b")
    now[0] += 10.1
    limiter.count("a")
    with pytest.raises(RequestError):
        limiter.count("a")
    monkeypatch.setattr(access, "MAX_CLIENTS", 3)
    for number in range(10):
        limiter.count(str(number))
    assert len(limiter._clients) == 3


def test_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.7", "example.org")))


def test_a_server_with_keys(translator_folder: Path) -> None:
    settings = ServerSettings([translator_folder], studio=True, keys=frozenset((KEY,)))
    asked = {"q": "The boy sees a mango.", "source": "en", "target": "mr"}
    with TestClient(create_app(settings), base_url="http://localhost", follow_redirects=False) as client:
        for path in ("/health", "/languages", "/frontend/settings", "/openapi.json", "/spec"):
            assert client.get(path).status_code == 200
        for path in ("/", "/metrics", "/api/models", "/nothing"):
            assert client.get(path).json() == {"error": "api_key: this server needs a valid key"}
        assert client.post("/translate", json=asked).status_code == 403
        assert client.post("/translate", json=asked | {"api_key": "wrong-key"}).status_code == 403
        assert client.post("/translate", json=asked | {"api_key": KEY}).status_code == 200
        assert client.post("/translate", json=asked, headers={"Authorization": f"Bearer {KEY}"}).status_code == 200
        assert client.get("/metrics", headers={"X-API-Key": KEY}).status_code == 200
        assert client.get("/?api_key=wrong").status_code == 403
        opened = client.get(f"/?api_key={KEY}")
        assert opened.status_code == 303 and opened.headers["location"] == "/"
        assert "HttpOnly; SameSite=Strict" in opened.headers["set-cookie"]
        assert client.get("/").status_code == 200, "the cookie is the key"
        assert client.post("/translate", json=asked).status_code == 200


def test_pages_of_other_sites(translator_folder: Path) -> None:
    settings = ServerSettings([translator_folder], allowed_origins=frozenset(("https://friend.example",)))
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        for origin, allowed in (("https://friend.example", True), ("https://evil.example", False)):
            headers = {"Origin": origin}
            preflight = client.options("/translate", headers=headers | {"Access-Control-Request-Method": "POST"})
            answer = client.post("/detect", data={"q": "The boy"}, headers=headers)
            reading = client.get("/languages", headers=headers)
            assert preflight.status_code == (204 if allowed else 403)
            assert answer.status_code == (200 if allowed else 403)
            for response in (preflight, answer, reading):
                assert response.headers.get("Access-Control-Allow-Origin") == (origin if allowed else None)
