"""A sample of broken model folders, corpora and traces: benchmarks/fuzz.py runs thousands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory and forked processes are those of Linux")
@pytest.mark.parametrize(("kind", "count"), [("models", 40), ("corpora", 15), ("traces", 25)])
def test_broken_files_end_in_a_sentence_or_a_result(kind: str, count: int) -> None:
    command = [sys.executable, str(ROOT / "benchmarks/fuzz.py"), kind, "--count", str(count), "--seed", "9000"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} broken {kind}" in done.stdout and "clear error" in done.stdout
