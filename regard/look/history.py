"""The validations of a training run: their scores, and traces of the attention at the time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.look.json_field import Field
from regard.look.trace import Trace
from regard.runtime.reading import read_bytes_inside

MAX_LOG = 1 << 29  # bytes


@dataclass(frozen=True)
class Moment:
    """One validation of a training run."""

    update: int  # optimizer updates so far
    epoch: float
    loss: float  # training loss since the previous moment
    score: float  # on the dev set; higher is better
    traces: Sequence[Trace]  # of the same sentences, in the same order, at every moment


def read_moments(log: Path, max_bytes: int = MAX_LOG, growing: bool = False) -> list[Moment]:
    """Return the validations that the log of a training run records.

    `growing`: the run may go on; a line that is still being written is left out, and there may be no validation yet.
    """
    if not log.is_file():
        raise ValueError(f"{log}: expected the log of a training run, and there is none")
    lines = read_bytes_inside(log, max_bytes).split(b"\n")
    moments = []
    for number, line in enumerate(lines[:-1] if growing else lines, 1):
        try:
            moment = _read_moment(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{log}, line {number}: damaged: {error}") from None
        if moment is not None:
            moments.append(moment)
    if not moments and not growing:
        raise ValueError(f"{log}: expected validations with what was looked at, and there are none")
    counts = sorted({len(moment.traces) for moment in moments})
    if len(counts) > 1:
        raise ValueError(f"{log}: damaged: expected as many traces at every validation, got {counts}")
    return moments


def _read_moment(line: bytes) -> Moment | None:
    """Return the validation of a line of the log, or None if the line is about something else."""
    if not line.strip():
        return None
    entry = Field(json.loads(line), "")
    if entry.object().get("kind") != "validation" or not entry.object().get("probes"):
        return None
    traces = [Trace.from_dict(trace.value) for trace in entry["probes"].items()]
    loss = float("nan") if entry["loss"].value is None else entry["loss"].number()
    score = (entry.get("chrf") or entry["score"]).number()
    return Moment(entry["update"].integer(), entry["epoch"].number(), loss, score, traces)
