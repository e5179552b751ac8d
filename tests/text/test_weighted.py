"""Weights of data: how they are written, and what is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.text.weighted import Weighted, drawn_rows, parse_weighted, weighted_parts


def test_how_weights_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_weighted("a.tsv") == Weighted([Path("a.tsv")])
    assert parse_weighted("a.tsv:0.5") == Weighted([Path("a.tsv")], 0.5)
    assert parse_weighted("a.en,a.de:2") == Weighted([Path("a.en"), Path("a.de")], 2)
    assert parse_weighted("a.en,a.de") == Weighted([Path("a.en"), Path("a.de")])
    assert parse_weighted("C:/a.tsv") == Weighted([Path("C:/a.tsv")])
    assert parse_weighted("C:/a.tsv:1e-1") == Weighted([Path("C:/a.tsv")], 0.1)
    for name in ("odd:2", "odd,name.tsv"):
        Path(name).touch()
        assert parse_weighted(name) == Weighted([Path(name)])
        assert parse_weighted(f"{name}:3") == Weighted([Path(name)], 3)


@pytest.mark.parametrize("weight", [0, -1, float("inf"), float("nan"), "2", True])
def test_weights_that_are_none(weight: object) -> None:
    with pytest.raises(ValueError, match=r"weight: expected a number above 0, got"):
        Weighted("a.tsv", weight)  # type: ignore[arg-type]


def test_parts() -> None:
    one = Weighted("a.tsv")
    assert weighted_parts("a.tsv") is weighted_parts(["a", "b"]) is weighted_parts([("a", "b")]) is None
    assert weighted_parts(one) == [one] and weighted_parts([one, one]) == [one, one]
    with pytest.raises(ValueError, match=r"expected every part as Weighted\(data, weight\), got 'b.tsv'"):
        weighted_parts([one, "b.tsv"])


def test_rows_are_drawn_as_often_as_their_weights_say() -> None:
    weights = np.array([0.25] * 400 + [1.0] * 100 + [2.5] * 100)
    drawn = [np.bincount(drawn_rows(weights, 1, epoch), minlength=600) for epoch in range(30)]
    counts = np.stack(drawn)
    assert np.all(counts >= np.floor(weights)) and np.all(counts <= np.ceil(weights))
    assert counts[:, :400].mean() == pytest.approx(0.25, abs=0.02)
    assert counts[:, 500:].mean() == pytest.approx(2.5, abs=0.05)
    assert not np.array_equal(drawn[0], drawn[1])
    assert np.array_equal(drawn_rows(weights, 1, 7), drawn_rows(weights, 1, 7))
    assert len(drawn_rows(np.full(3, 1e-9), 1, 1)) == 1  # an epoch is never empty
