"""The log of a training as events: lines that are being written, logs that are shortened, replaced or end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from regard.serving.studio.log_events import LogTail, log_events
from tests.serving.studio.asking import events


def line(**entry: Any) -> str:
    return json.dumps(entry) + "\n"


def test_a_line_is_read_when_it_is_complete(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    tail = LogTail(log)
    assert tail.read() == []
    log.write_text(line(kind="update", update=1) + '{"kind": "upd')
    assert tail.read() == [{"kind": "update", "update": 1}]
    assert tail.read() == []
    with log.open("a") as file:
        file.write('ate", "update": 2}\n')
    assert tail.read() == [{"kind": "update", "update": 2}]
    assert tail.position == log.stat().st_size and not tail.restarted


def test_traces_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(line(kind="validation", update=3, probes=[{"large": 1}]) + "[1]\n" + "no json\n" + line(kind="end"))
    assert LogTail(log).read() == [{"kind": "validation", "update": 3}, {"kind": "end"}]


@pytest.mark.parametrize("again", [line(kind="x"), line(kind="message", text="a much longer line than before") * 2])
def test_a_log_that_begins_anew(tmp_path: Path, again: str) -> None:
    """It is shorter than before, or it was replaced and what was read ends in the middle of a line."""
    log = tmp_path / "log.jsonl"
    log.write_text(line(kind="update", update=1) * 2)
    tail = LogTail(log)
    assert len(tail.read()) == 2
    log.write_text(again)
    assert tail.read() == [json.loads(each) for each in again.splitlines()]
    assert tail.restarted
    log.unlink()
    assert tail.read() == [] and tail.restarted


def test_events(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(line(kind="update", update=1))
    asked = 0

    def status() -> dict[str, str]:
        """Return whether it runs: the second time not any more, after a last entry."""
        nonlocal asked
        asked += 1
        if asked == 2:
            log.write_text(log.read_text() + line(kind="end"))
        return {"state": "running" if asked < 2 else "finished"}

    async def collected() -> str:
        return "".join([each async for each in log_events(LogTail(log), status)])

    assert events(asyncio.run(collected())) == [
        ("status", {"state": "running"}),
        ("entries", [{"kind": "update", "update": 1}]),
        ("status", {"state": "finished"}),
        ("entries", [{"kind": "end"}]),
        ("end", {}),
    ]


def test_a_stream_ends_with_the_server(tmp_path: Path) -> None:
    async def collected() -> list[str]:
        stream = log_events(LogTail(tmp_path / "log.jsonl"), lambda: {"state": "running"}, lambda: True)
        return [each async for each in stream]

    assert events("".join(asyncio.run(collected()))) == [("status", {"state": "running"})]
