"""A sample of broken model folders, corpora and traces: benchmarks/fuzz.py runs thousands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COUNT = 20  # of each kind


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory and forked processes are those of Linux")
def test_broken_files_end_in_a_sentence_or_a_result() -> None:
    kinds = ("models", "corpora", "traces")
    command = [sys.executable, str(ROOT / "benchmarks/fuzz.py"), *kinds, "--count", str(COUNT), "--seed", "9000"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for kind in kinds:
        assert f"{COUNT} broken {kind}" in done.stdout
