"""Many mixed requests, and the memory of the server at the beginning and at the end."""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections import Counter
from typing import Any

from serving_parts.clients import Connection
from serving_parts.process import SENTENCES, RunningServer, running_server

WARM_UP = 2_000  # requests after which the memory is compared
MAX_GROWTH = 1.1
CLIENTS = 16
Request = tuple[str, dict[str, Any]]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--threads", type=int, help="CPU threads of the server")


def run(given: argparse.Namespace) -> int:
    options = ["--threads", str(given.threads)] if given.threads else []
    with running_server(given.model, *options) as server:
        return asyncio.run(_soak(server, given.requests))


async def _soak(server: RunningServer, count: int) -> int:
    statuses: Counter[int] = Counter()
    draw, began = random.Random(1), time.monotonic()
    await _send(server, [mixed(draw) for _ in range(min(WARM_UP, count))], statuses)
    first = server.resident_megabytes()
    print(f"after {min(WARM_UP, count):7,} requests {first:8.1f} MB", flush=True)
    highest = first
    for done in range(WARM_UP, count, WARM_UP):
        await _send(server, [mixed(draw) for _ in range(min(WARM_UP, count - done))], statuses)
        highest = max(highest, server.resident_megabytes())
        print(f"after {min(done + WARM_UP, count):7,} requests {server.resident_megabytes():8.1f} MB", flush=True)
    last = server.resident_megabytes()
    statuses_text = ", ".join(f"{code}: {number:,}" for code, number in sorted(statuses.items()))
    print(
        f"{count:,} requests in {time.monotonic() - began:,.0f} s; statuses {statuses_text}; highest {highest:.1f} MB"
    )
    print(f"memory at the end / after {WARM_UP:,}: {last / first:.3f} (at most {MAX_GROWTH:g})")
    return int(last / first > MAX_GROWTH or any(code >= 500 for code in statuses))


async def _send(server: RunningServer, requests: list[Request], statuses: Counter[int]) -> None:
    """Send requests by several clients, each of which takes the next one."""
    remaining = iter(requests)

    async def client() -> None:
        connection = Connection(server.host, server.port)
        for path, fields in remaining:
            status, _ = await connection.post(path, fields)
            statuses[status] += 1
        await connection.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))


def mixed(draw: random.Random) -> Request:
    """Return a request of any kind: mostly one sentence, some with many, with details, or wrong."""
    text = draw.choice(SENTENCES)
    fields: dict[str, Any] = {"q": text, "source": "en", "target": "mr"}
    kind = draw.random()
    if kind < 0.03:
        return "/detect", {"q": text}
    if kind < 0.06:
        return "/translate", fields | {"q": ""}
    if kind < 0.09:
        return "/translate", fields | {"q": [draw.choice(SENTENCES) for _ in range(draw.randint(2, 20))]}
    if kind < 0.12:
        return "/translate", fields | {"q": f"<p>{text} <b>{draw.randint(1, 999)}</b></p>", "format": "html"}
    if kind < 0.15:
        return "/translate", fields | {"alignment": True, "trace": draw.random() < 0.3, "alternatives": 3}
    if kind < 0.17:
        return "/translate", fields | {"glossary": {"boy": "मुलगा"}, "keep": "numbers"}
    if kind < 0.18:
        return "/translate", fields | {"q": " ".join([text] * draw.randint(5, 40))}
    if kind < 0.19:
        return "/translate", fields | {"source": "auto", "q": f"{text} {draw.random()}"}
    return "/translate", fields | {"q": f"{text} {draw.choice(SENTENCES)}" if draw.random() < 0.2 else text}
