"""Requests that mean no good: each must get a clear 4xx or a right answer, and the server must go on."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from serving_parts.clients import Connection
from serving_parts.process import RunningServer, running_server

SECONDS = 60.0  # in which a request must be answered
CLIENTS = 16
MARKUP = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</textarea><svg/onload=alert(1)>",
    "<b><i></b></i>" * 50,
    "<!--" * 200,
    "&lt;&#0;&#x110000;&notanentity;",
    "{{7*7}} ${7*7} %s %n <%= 7 %>",
    "<" * 3000,
    "[](" * 1500,
    "*_" * 2000,
    '<a href="' + "x" * 5000,
)
CONTROLS = (
    "\x00\x01\x02",
    "\x1b[2J",
    "a\u202eb\u200b\ufeff",
    "\ufdd0\ufdd7",
    "\U0010ffff",
    "e" + "\u0301" * 5000,
    "\r\n\r\n",
)
HOSTS = (
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.nip.io",
    "169.254.169.254",
    "[::ffff:1.2.3.4]",
    "a" * 3000,
)


class Attack(NamedTuple):
    """A request, as bytes, and the statuses that are right for it; seconds to wait between its parts."""

    name: str
    parts: tuple[bytes, ...]
    allowed: frozenset[int]
    pause: float = 0.0


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--threads", type=int, help="CPU threads of the server")


def run(given: argparse.Namespace) -> int:
    options = ["--threads", str(given.threads)] if given.threads else []
    with running_server(given.model, *options) as server:
        return asyncio.run(_attack(server, given.requests))


async def _attack(server: RunningServer, count: int) -> int:
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    numbers = iter(range(count))

    async def client() -> None:
        for number in numbers:
            attack = drawn(number, server)
            outcome = await _answered(server, attack)
            outcomes[f"{attack.name} {outcome.split(' ')[0]}"] += 1
            if not _is_right(attack, outcome):
                wrong.append(f"case {number}, {attack.name}: {outcome[:300]}")

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    for name, number in sorted(outcomes.items()):
        print(f"{number:6} {name}")
    connection = Connection(server.host, server.port)
    status, body = await connection.post("/translate", {"q": "The boy sees a mango.", "source": "en", "target": "mr"})
    goes_on = server.is_running and status == 200 and bool(json.loads(body)["translatedText"])
    for each in wrong:
        print(each)
    print(f"{count:,} hostile requests, {len(wrong)} answered wrongly (0); ", end="")
    print("the server goes on" if goes_on else "the server is broken")
    return int(bool(wrong) or not goes_on)


def _is_right(attack: Attack, outcome: str) -> bool:
    """Whether the status is allowed, and an error is one sentence in JSON."""
    status, _, body = outcome.partition(" ")
    if not status.isdigit() or int(status) not in attack.allowed:
        return False
    if int(status) == 200:
        return "translatedText" in json.loads(body)
    return not body or body.startswith("Invalid HTTP") or bool(json.loads(body)["error"])


async def _answered(server: RunningServer, attack: Attack) -> str:
    """Send a request, and return the status and the body of the response, or what happened instead."""
    try:
        async with asyncio.timeout(SECONDS):
            return await _exchanged(server, attack)
    except TimeoutError:
        return "timeout"
    except (OSError, asyncio.IncompleteReadError, ValueError) as error:
        return f"connection: {error!r}"


async def _exchanged(server: RunningServer, attack: Attack) -> str:
    reader, writer = await asyncio.open_connection(server.host, server.port, limit=1 << 24)
    reading = asyncio.create_task(_response(reader))
    try:
        for part in attack.parts:
            writer.write(part)
            try:
                await writer.drain()
            except OSError:  # the server has answered, and closed the connection
                break
            if attack.pause:
                await asyncio.sleep(attack.pause)
            if reading.done():
                break
        return await reading
    finally:
        reading.cancel()
        writer.close()


async def _response(reader: asyncio.StreamReader) -> str:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    lines = head.split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
    if "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    else:
        body = await reader.read()
    return f"{lines[0].split(' ')[1]} {body.decode()}"


def drawn(number: int, server: RunningServer) -> Attack:
    """Return case `number`, the same every time."""
    draw = random.Random(number)
    kind: Callable[[random.Random, str], Attack] = draw.choice(
        [_markup, _markup, _controls, _controls, _megabyte, _broken, _broken, _deep, _slow, _rebinding, _odd_fields]
    )
    return kind(draw, f"{server.host}:{server.port}")


def _request(body: bytes, host: str, kind: str = "application/json", path: str = "/translate", more: str = "") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\n{more}Content-Length: {len(body)}\r\n\r\n"
    return head.encode("latin-1", "replace") + body


def _fields(text: str, **more: Any) -> bytes:
    return json.dumps({"q": text, "source": "en", "target": "mr", **more}).encode()


def _markup(draw: random.Random, host: str) -> Attack:
    text = "The boy " + draw.choice(MARKUP) + " sees a mango."
    body = _fields(text, format=draw.choice(["text", "html"]), keep=draw.choice(["", "markup", "numbers,names,markup"]))
    return Attack("markup", (_request(body, host),), frozenset((200, 400)))


def _controls(draw: random.Random, host: str) -> Attack:
    text = "The boy" + draw.choice(CONTROLS) * draw.randint(1, 2)
    return Attack("control characters", (_request(_fields(text), host),), frozenset((200, 400)))


def _megabyte(draw: random.Random, host: str) -> Attack:
    text = draw.choice(["x", "The boy sees. ", "<b>", "漢"]) * 1_000_000
    body = _fields(text[:1_000_000], format=draw.choice(["text", "html"]))
    return Attack("1 MB of text", (_request(body, host),), frozenset((400, 413)))


def _broken(draw: random.Random, host: str) -> Attack:
    broken = draw.choice([b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\x80", b"\\ud800", b"\xf8\x88\x80\x80\x80"])
    if draw.random() < 0.3:
        form = b"q=" + b"%FF%C3" + b"&source=en&target=mr"
        return Attack("broken UTF-8", (_request(form, host, "application/x-www-form-urlencoded"),), frozenset((400,)))
    body = b'{"q": "The boy ' + broken + b'", "source": "en", "target": "mr"}'
    return Attack("broken UTF-8", (_request(body, host),), frozenset((400,)))


def _deep(draw: random.Random, host: str) -> Attack:
    depth = draw.choice([500, 5_000, 100_000])
    opening, closing = draw.choice([(b"[", b"]"), (b'{"a":', b"}")])
    body = b'{"q": ' + opening * depth + (b"1" + closing * depth if draw.random() < 0.7 else b"") + b"}"
    path = draw.choice(["/translate", "/api/classify", "/detect", "/suggest"])
    return Attack("deep JSON", (_request(body, host, path=path),), frozenset((400, 403, 422)))


def _slow(draw: random.Random, host: str) -> Attack:
    whole = _request(_fields("The boy sees a mango."), host)
    if draw.random() < 0.5:  # a body that never comes
        parts = whole[:-20], *[b" "] * 3
        return Attack("slow body", parts, frozenset((408,)), pause=draw.uniform(0.5, 2))
    cut = len(whole) - 30
    parts = whole[:cut], whole[cut : cut + 10], whole[cut + 10 :]
    return Attack("slow body that comes", parts, frozenset((200,)), pause=draw.uniform(0.1, 0.5))


def _rebinding(draw: random.Random, host: str) -> Attack:
    body = _fields("The boy sees a mango.")
    if draw.random() < 0.4:
        more = f"Origin: {draw.choice(['http://evil.example', 'null', 'http://' + host + '.evil.example'])}\r\n"
        return Attack("foreign Origin", (_request(body, host, more=more),), frozenset((403,)))
    return Attack("foreign Host", (_request(body, draw.choice(HOSTS)),), frozenset((400, 403)))


def _odd_fields(draw: random.Random, host: str) -> Attack:
    odd: Any = draw.choice(
        [None, 5, -1, 1e308, True, [], {}, [[]], "", "auto" * 99, ["a"] * 300, {"q": {"q": 1}}, "\x00"]
    )
    name = draw.choice(
        ["q", "source", "target", "format", "alternatives", "glossary", "keep", "beam", "trace", "model"]
    )
    fields = {"q": "The boy sees.", "source": "en", "target": "mr"} | {name: odd}
    return Attack("odd fields", (_request(json.dumps(fields).encode(), host),), frozenset((200, 400)))
