"""What a model was like at a validation: how well it did, and what it looked at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.look.json_field import Field
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
    for number, line in enumerate(log.read_bytes().split(b"\n"), 1):
        try:
            moment = _read_moment(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{log}, line {number}: damaged: {error}") from None
        if moment is not None:
            found.append(moment)
    if not found:
        raise ValueError(f"{log}: expected validations with what was looked at, and there are none")
    counts = sorted({len(moment.traces) for moment in found})
    if len(counts) > 1:
        raise ValueError(f"{log}: damaged: expected as many traces at every validation, got {counts}")
    return found


def _read_moment(line: bytes) -> Moment | None:
    """A line of the log, or None if it is about something else."""
    if not line.strip():
        return None
    entry = Field(json.loads(line), "")
    if entry.object().get("kind") != "validation" or not entry.object().get("probes"):
        return None
    traces = [Trace.from_dict(trace.value) for trace in entry["probes"].items()]
    loss = entry["loss"]
    score = entry.get("chrf") or entry["score"]
    return Moment(
        entry["update"].whole(),
        entry["epoch"].number(),
        float("nan") if loss.value is None else loss.number(),
        score.number(),
        traces,
    )
