"""Clients of a server, as a process: `python clients.py HOST PORT CLIENTS SECONDS TEXT…` prints latencies as JSON."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any


class Connection:
    """A connection to a server that is used for one request after the other."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, fields: Mapping[str, Any]) -> tuple[int, bytes]:
        """Send fields as JSON, and return the status and the body of the response."""
        body = json.dumps(fields, ensure_ascii=False).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nContent-Type: application/json\r\n"
        return await self.send(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def send(self, request: bytes) -> tuple[int, bytes]:
        """Send the bytes of a request, and return the status and the body of the response."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection") == "close":
            await self.close()
        return int(lines[0].split(" ")[1]), body

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def client(host: str, port: int, sentences: Sequence[str], until: float) -> tuple[list[float], list[str]]:
    """Send one sentence after the other; return the seconds that each took, and what went wrong."""
    connection, seconds, errors = Connection(host, port), [], []
    draw = random.Random(id(sentences))
    while (began := time.perf_counter()) < until:
        fields = {"q": draw.choice(sentences), "source": "en", "target": "mr"}
        try:
            status, body = await connection.post("/translate", fields)
            if status != 200 or not json.loads(body)["translatedText"]:
                errors.append(f"{status} {body[:200]!r}")
        except (OSError, asyncio.IncompleteReadError, KeyError, ValueError) as error:
            errors.append(repr(error))
            await connection.close()
        seconds.append(time.perf_counter() - began)
    await connection.close()
    return seconds, errors


async def clients(host: str, port: int, count: int, seconds: float, sentences: Sequence[str]) -> dict[str, Any]:
    """Run several clients at the same time."""
    began = time.perf_counter()
    results = await asyncio.gather(*(client(host, port, sentences, began + seconds) for _ in range(count)))
    taken = time.perf_counter() - began
    return {
        "latencies": [each for latencies, _ in results for each in latencies],
        "errors": [each for _, errors in results for each in errors][:20],
        "seconds": taken,
    }


if __name__ == "__main__":
    given = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    print(json.dumps(asyncio.run(clients(*given, sys.argv[5:]))))
