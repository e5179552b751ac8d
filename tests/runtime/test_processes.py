"""Processes that work for another one."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from regard.runtime import processes
from regard.runtime.processes import WorkerProcess, available_cores, reason_of, watch_input, worker_environment

CHILD = """
import json, sys, time
from regard.runtime.processes import watch_input
task = json.loads(sys.stdin.readline())
watch_input(sys.stdin, lambda: print("left", flush=True))
print(json.dumps({"got": task}), flush=True)
try:
    while True: time.sleep(0.1)
except KeyboardInterrupt:
    print("odd"); print(7); print(json.dumps({"stopped": True}), flush=True)
    sys.exit("the last words")
"""


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    start = subprocess.Popen

    def popen(command: list[str], **options: Any) -> Any:
        return start([sys.executable, "-c", CHILD], **options)

    monkeypatch.setattr(processes.subprocess, "Popen", popen)


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN], ids=["foreground", "background"])
def test_a_worker_gets_its_task_reports_and_stops(scripted: None, tmp_path: Path, handler: Any) -> None:
    """Also in the background of a script, where SIGINT is ignored."""
    events: list[dict[str, Any]] = []
    before = signal.signal(signal.SIGINT, handler)
    try:
        worker = WorkerProcess("a.module", {"lines": 3}, tmp_path / "logs" / "errors.txt", 1, events.append)
    finally:
        signal.signal(signal.SIGINT, before)
    while not events:
        time.sleep(0.01)
    assert not worker.has_ended and worker.pid > 0
    worker.stop()
    assert worker.wait_for_end() == (1, "the last words")
    assert [event for event in events if event] == [{"got": {"lines": 3}}, {"stopped": True}]
    worker.kill()  # it has ended
    assert not list((tmp_path / "logs").iterdir())


def test_a_worker_ends_with_its_standard_input() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=worker_environment(1)
    )
    assert b"left" in child.communicate(b"{}\n", timeout=30)[0]
    assert child.returncode == 130


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    environment = worker_environment(3)
    assert environment["OMP_NUM_THREADS"] == "3" and environment["OMP_WAIT_POLICY"] == "PASSIVE"
    assert environment["PYTHONPATH"].split(os.pathsep)[-1] == "elsewhere"
    assert 1 <= available_cores() <= (os.cpu_count() or 1)


def test_other_lines_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    watch_input(io.StringIO("go on\n\n")).join()
    assert ended == [130]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("expected a b,\ngot c"), "expected a b,"),
        (RuntimeError("out of memory"), "RuntimeError: out of memory"),
        (AssertionError(), "AssertionError"),
        (OSError(28, os.strerror(28), "model"), f"model: {os.strerror(28)}"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_reasons(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason
