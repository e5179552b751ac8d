"""A comparison that is killed or interrupted: no process stays behind, and --resume does what is missing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.experiments.compare import tiny
from tests.training import toy

LONG = {"training.epochs": 30, "training.validations": 40}
"""120 updates, a validation with a checkpoint after every third"""
SCRIPT = """
import sys
from pathlib import Path
from tests.experiments.compare import tiny

folder = Path(sys.argv[1])
recipes = [folder / "short.toml", folder / "long.toml"]
print(tiny.compare(folder / "out", data=folder / "pairs.tsv", recipes=recipes, resume=(folder / "out").exists()))
"""


def files(folder: Path) -> None:
    """Write the data, and the recipes of a short run and of a long one."""
    toy.write_tsv(folder / "pairs.tsv")
    tiny.recipe(folder, "short")
    tiny.recipe(folder, "long", **LONG)


def start(folder: Path) -> subprocess.Popen[str]:
    """Start a comparison, or go on with it, one run at a time."""
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait(until: Callable[[], bool], run: subprocess.Popen[str] | None = None) -> None:
    began = time.monotonic()
    while not until():
        time.sleep(0.02)
        assert time.monotonic() - began < 100 and (run is None or run.poll() is None)


def validations(model: Path) -> int:
    file = model / "log.jsonl"
    return file.read_bytes().count(b'"validation"') if file.exists() else 0


def unlocked(model: Path) -> bool:
    """Whether no process trains there: its lock can be taken."""
    import fcntl

    lock = model.with_name(".model.lock")
    if not lock.exists():
        return True
    with lock.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


@pytest.mark.skipif(sys.platform == "win32", reason="signals and locks are those of POSIX")
def test_killed_and_resumed(tmp_path: Path) -> None:
    files(tmp_path)
    short, long = (tmp_path / "out/runs" / name / "seed-1/model" for name in ("short", "long"))
    run = start(tmp_path)
    wait(lambda: validations(long) >= 3, run)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    wait(lambda: unlocked(long))
    weights = (short / "model.safetensors").stat().st_mtime_ns
    assert (short.parent / "result.json").exists() and not (long.parent / "result.json").exists()
    assert not (tmp_path / "out/compare.json").exists()
    assert "ended" not in json.loads((long / "card.json").read_text(encoding="utf-8"))

    run = start(tmp_path)
    stdout, stderr = run.communicate(timeout=150)
    assert run.returncode == 0 and "Best: " in stdout, stderr
    assert (short / "model.safetensors").stat().st_mtime_ns == weights, "not trained again"
    assert (tmp_path / "out/compare.html").exists() and not list(tmp_path.rglob(".*.lock"))
    tiny.compare(tmp_path / "whole", data=tmp_path / "pairs.tsv", recipes=[tmp_path / "long.toml"])
    whole = toy.weights(tmp_path / "whole/runs/long/seed-1/model")
    assert toy.differing(toy.weights(long), whole) == [], "as if it had not been killed"


@pytest.mark.skipif(sys.platform == "win32", reason="signals and locks are those of POSIX")
def test_control_c_saves_all_runs(tmp_path: Path) -> None:
    files(tmp_path)
    model = tmp_path / "out/runs/long/seed-1/model"
    given = ["--out", tmp_path / "out", "--recipe", tmp_path / "long.toml", "--seeds", "1", "--minutes", "1"]
    command = [sys.executable, "-m", "regard", "compare", tmp_path / "pairs.tsv", *given, "--device", "cpu"]
    run = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait(lambda: validations(model) >= 1, run)
    run.send_signal(signal.SIGINT)
    stdout, stderr = run.communicate(timeout=60)
    assert run.returncode == 130 and stdout == "" and "Traceback" not in stderr
    assert stderr.splitlines()[-1] == "regard: interrupted"
    assert unlocked(model), "no process stays behind"
    assert not list(tmp_path.rglob(".*.lock")) and not list(tmp_path.rglob("*stderr*"))
    assert "interrupted: what was learned so far is kept" in (model / "log.jsonl").read_text(encoding="utf-8")
    assert not (model.parent / "failed.json").exists()
