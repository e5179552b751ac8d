"""A few kills at random moments: benchmarks/kills.py kills fifty times, `train --best` and `compare` too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_a_killed_training_comes_to_the_same_results() -> None:
    command = [sys.executable, str(ROOT / "benchmarks/kills.py"), "--kills", "3", "--scenario", "train"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "train: 3 kills" in done.stdout and "all results as without kills" in done.stdout
