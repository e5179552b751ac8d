"""Killed at any moment, a run loses nothing but time."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import regard
from tests.training import toy

KILLS = 20
SETTINGS = toy.TINY | {"training.epochs": 30, "training.validations": 40, "training.average": 0.9}
"""120 updates, a validation with a checkpoint after every third"""


def start(data: Path, out: Path) -> subprocess.Popen[str]:
    settings = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
    fixed = ["--device", "cpu", "--threads", "1", "--quiet", *(["--resume"] if out.exists() else [])]
    command = [sys.executable, "-m", "regard", "train", str(data), "--out", str(out), *fixed, *settings]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def ended_well(run: subprocess.Popen[str]) -> None:
    _, message = run.communicate(timeout=300)
    assert run.returncode == 0 and message == ""


def seconds_to_the_first_update(out: Path) -> float:
    began = time.monotonic()
    while not (out / "log.jsonl").exists():
        time.sleep(0.01)
        assert time.monotonic() - began < 100
    return time.monotonic() - began


def validations(out: Path) -> int:
    """How far the log says the run is; its last line may be half written."""
    file = out / "log.jsonl"
    return file.read_bytes().count(b'"validation"') if file.exists() else 0


def test_twenty_kills_change_nothing(tmp_path: Path) -> None:
    data = toy.write_tsv(tmp_path / "pairs.tsv")
    whole, out = tmp_path / "whole", tmp_path / "killed"
    run = start(data, whole)
    starting = seconds_to_the_first_update(whole)
    ended_well(run)

    drawn = random.Random(3)
    reached, loaded = [], 0
    for number in range(KILLS):
        before = validations(out)
        run = start(data, out)
        if number % 2:  # somewhere after the next validation
            while validations(out) <= before and run.poll() is None:
                time.sleep(0.005)
            time.sleep(drawn.uniform(0.0, 0.1))
        else:  # anywhere from the start on
            time.sleep(drawn.uniform(0.0, 1.3 * starting))
        run.send_signal(signal.SIGKILL)
        _, message = run.communicate()
        assert run.returncode in (-signal.SIGKILL, 0) and message == ""
        reached.append(validations(out))
        if out.exists() and "ended" not in json.loads((out / "card.json").read_text(encoding="utf-8")):
            toy.interrupted(out, validated=(out / "model.safetensors").exists())
            loaded += 1
    assert loaded >= 5 and len(set(reached)) >= 4, "the kills came at several moments"
    ended_well(start(data, out))

    assert toy.differing(toy.weights(out), toy.weights(whole)) == []
    assert toy.differing(toy.last(out), toy.last(whole)) == []
    assert regard.load(out).card["scores"] == regard.load(whole).card["scores"]
    assert report(out) == report(whole)
    assert {file.name for file in tmp_path.iterdir()} == {"pairs.tsv", "whole", "killed"}
    assert not list(tmp_path.rglob("*.new"))


def report(folder: Path) -> list[tuple[Any, ...]]:
    return [(entry["kind"], entry.get("update"), entry.get("chrf")) for entry in toy.log(folder)]
