"""What heads do, told from weights made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from regard.alignment.head_report import head_report
from regard.alignment.links import parse_gold
from regard.look.trace import AttentionWeights, Matrix, Trace
from tests.look.traces import side

SOURCE, TARGET = side("one two three four .", ["one", "two", "three", "four", "."]), side("a b c d .", list("abcd."))
IDENTITY = np.eye(6, dtype=np.float32)


def column(place: int) -> Matrix:
    weights = np.zeros((6, 6), np.float32)
    weights[:, place] = 1
    return weights


@pytest.mark.parametrize(
    ("name", "weights", "kind"),
    [
        ("cross", IDENTITY, "in order"),
        ("cross", column(5), "end token"),
        ("cross", column(4), "punctuation"),
        ("cross", column(0), "first word"),
        ("cross", column(2), "one word"),
        ("cross", np.full((6, 6), 1 / 6, np.float32), "broad"),
        ("encoder", IDENTITY, "itself"),
        ("encoder", np.eye(6, k=-1, dtype=np.float32), "previous word"),
        ("encoder", np.eye(6, k=1, dtype=np.float32), "next word"),
        ("cross", np.tile(np.array([0, 0.4, 0, 0.4, 0.2, 0], np.float32), (6, 1)), "mixed"),
    ],
)
def test_kinds(name: str, weights: Matrix, kind: str) -> None:
    (report,) = head_report(Trace(SOURCE, TARGET, [AttentionWeights(name, weights[None, None])]))  # type: ignore[arg-type]
    assert (report.kind, report.layer, report.head, report.aer) == (kind, 0, 0, None)
    assert report.share > (0.2 if kind == "mixed" else 0.7)


def test_entropy_and_alignment_error_of_every_head() -> None:
    uniform = np.full((6, 6), 1 / 6, np.float32)
    trace = Trace(SOURCE, TARGET, [AttentionWeights("cross", np.stack([IDENTITY, uniform])[:, None])])
    gold = parse_gold("0-0 1-1 2-2 3-3 4p4")
    sharp, flat = head_report(trace, gold)
    assert (sharp.layer, flat.layer) == (0, 1)
    assert sharp.entropy == 0 and flat.entropy == pytest.approx(np.log2(6))
    assert sharp.aer == 0 and flat.aer is not None and flat.aer > 0.5
    encoder = Trace(SOURCE, TARGET, [AttentionWeights("encoder", IDENTITY[None, None])])
    assert head_report(encoder, gold)[0].aer is None
