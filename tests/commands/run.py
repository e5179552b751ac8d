"""The commands as a user runs them: in a process of their own, or in this one."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli import main
from tests.training import toy

SETTINGS = [part for key, value in toy.TINY.items() for part in ("--set", f"{key}={value}")]
SOURCES = [source for source, _ in toy.PAIRS]


def regard(
    *arguments: str | Path, stdin: bytes | None = None, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "regard", *map(str, arguments)],
        capture_output=True,
        input=stdin if stdin is not None else b"",
        timeout=120,
        env={**os.environ, **(environment or {})},
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


class Inside:
    """The same without a new process, which takes two seconds to start; an error that gets out is a traceback."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capture = patch, capture

    def __call__(self, *arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        given = ["regard", *map(str, arguments)]
        self._patch.setattr(sys, "argv", given)
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main()
        report = self._capture.readouterr()
        return subprocess.CompletedProcess(given, int(ended.value.code or 0), report.out, report.err)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """A user's mistake: one line on standard error, exit code 2, no traceback."""
    assert done.returncode == 2, done.stderr[-2000:]
    assert done.stdout == "" and "Traceback" not in done.stderr
    assert done.stderr.startswith("regard: ") and done.stderr.count("\n") == 1
    return done.stderr
