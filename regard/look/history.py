"""What a model was like at a validation: how well it did, and what it looked at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.look.trace import Trace


@dataclass(frozen=True)
class Moment:
    update: int
    """updates of the weights so far"""
    epoch: float
    loss: float
    """in training, since the moment before"""
    score: float
    """on dev: higher is better"""
    traces: Sequence[Trace]
    """of the same sentences, in the same order, at every moment"""


def read_moments(log: Path) -> list[Moment]:
    """The validations of a run, out of its log."""
    if not log.is_file():
        raise ValueError(f"{log}: expected the log of a training run, and there is none")
    found = []
    for line in log.read_text(encoding="utf-8").split("\n"):
        entry = json.loads(line) if line else {}
        if entry.get("kind") == "validation" and entry.get("probes"):
            traces = [Trace.from_dict(trace) for trace in entry["probes"]]
            loss = float("nan") if entry["loss"] is None else float(entry["loss"])
            found.append(
                Moment(
                    int(entry["update"]),
                    float(entry["epoch"]),
                    loss,
                    float(entry["chrf"] if "chrf" in entry else entry["score"]),
                    traces,
                )
            )
    if not found:
        raise ValueError(f"{log}: expected validations with what was looked at, and there are none")
    return found
