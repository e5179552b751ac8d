"""The validations of a training run, read from its log: also while it is being written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.look.history import read_moments
from tests.look.traces import marathi


def entry(update: int) -> str:
    probe = marathi().as_dict()
    return json.dumps(
        {"kind": "validation", "update": update, "epoch": 1, "loss": 2.0, "chrf": 10.0, "probes": [probe]}
    )


def test_a_log_that_grows(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"kind": "message", "text": "begun"}\n')
    assert read_moments(log, growing=True) == []
    with pytest.raises(ValueError, match="expected validations"):
        read_moments(log)
    log.write_text(f"{entry(5)}\n{entry(9)[:-20]}")
    assert [moment.update for moment in read_moments(log, growing=True)] == [5]
    with pytest.raises(ValueError, match="line 2: damaged"):
        read_moments(log)
    log.write_text(f"{entry(5)}\n{entry(9)}\n")
    assert [moment.update for moment in read_moments(log, growing=True)] == [5, 9]
    with pytest.raises(ValueError, match="expected at most 100 bytes"):
        read_moments(log, 100, growing=True)
