"""The selection of rows follows the rules of small corpora: limits, dev, duplicates, leaked sources."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.corpora import selection, texts
from regard.corpora.selection import Selection, limit_from_counts, select
from regard.text.lengths import character_limit, limit_from, within_characters
from regard.text.pairs import Pair, read_pairs
from regard.text.split import leaked_sources, split
from tests.corpora.stored import stored, written


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (selection, texts):
        monkeypatch.setattr(
            module, "spans", lambda size, step=37: (slice(k, min(size, k + step)) for k in range(0, size, step))
        )


def train(chosen: Selection) -> list[Pair]:
    return [pair for rows in chosen.rows() for pair in chosen.pairs(rows)]


@pytest.mark.parametrize("count", [30, 700])
def test_dev_is_that_of_small_corpora(count: int, tmp_path: Path) -> None:
    file = written(tmp_path / "pairs.tsv", count)
    expected = split(read_pairs([file]).pairs)
    chosen = select([stored(file)], [1.0], tmp_path, None, None)
    assert (train(chosen), chosen.dev) == expected
    assert chosen.max_characters == 1_000


def test_long_lines_are_skipped_and_reported_as_those_of_small_corpora(tmp_path: Path) -> None:
    file = written(tmp_path / "pairs.tsv", 300)
    for limit in (None, 30):
        with file.open("a", encoding="utf-8") as more:
            more.write("\n" + "x" * 1200 + "\ty\n")
        corpus = read_pairs([file])
        expected = within_characters(corpus, limit or character_limit(corpus.pairs))
        chosen = select([stored(file)], [1.0], tmp_path, limit, None)
        assert (train(chosen), chosen.dev) == split(expected.pairs)
        assert sorted(chosen.reports) == sorted(f"pairs.tsv: {line}" for line in expected.report())
    with pytest.raises(ValueError, match=r"pairs.tsv: no pair left: all are longer than 1 characters"):
        select([stored(file)], [1.0], tmp_path, 1, None)


def test_a_dev_part_that_is_given(tmp_path: Path) -> None:
    file = written(tmp_path / "pairs.tsv", 300)
    pairs = read_pairs([file]).pairs
    dev = [Pair(pairs[n].source.upper() + " !", "x", n) for n in range(5)] + [Pair("nobody says this", "x", 9)]
    chosen = select([stored(file)], [1.0], tmp_path, None, dev)
    assert train(chosen) == pairs and chosen.dev == dev
    assert chosen.leaked == leaked_sources(pairs, dev) > 0


def test_too_few_sources_for_dev(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("a\tb\nc\td\n")
    with pytest.raises(ValueError, match="a dev part needs 5 distinct sources, 2 came"):
        select([stored(file)], [1.0], tmp_path, None, None)


def test_several_sources_of_data(tmp_path: Path) -> None:
    """Dev is of the first; a pair counts once, with its largest weight; sources of dev occur in no other."""
    files = [written(tmp_path / f"{seed}.tsv", 400, seed) for seed in (1, 2, 3)]
    shared = [f"shared {n}\tpair {n}" for n in range(50)]
    for file in files:
        with file.open("a", encoding="utf-8") as more:
            more.write("\n" + "\n".join(shared))
    weights = [1.0, 0.5, 3.0]
    chosen = select([stored(file) for file in files], weights, tmp_path, None, None)
    _, dev = split(read_pairs([files[0]]).pairs)
    assert chosen.dev == dev
    rows = np.concatenate(list(chosen.rows()))
    parts = np.searchsorted(chosen.offsets, rows, "right") - 1
    both = [(pair.source, pair.target) for pair in train(chosen)]
    assert len(both) == len(set(both))
    assert leaked_sources(train(chosen), dev) == 0
    of_dev = {pair.source for pair in dev}
    for pair, part in zip(train(chosen), parts.tolist(), strict=True):
        if pair.source.startswith("shared "):
            assert part == 2 and pair.source not in of_dev
    everything = {(p.source, p.target) for file in files for p in read_pairs([file]).pairs}
    left_out = everything - set(both)
    assert left_out and all(leaked_sources([Pair(*each, 0)], dev) for each in left_out)


def test_the_limit_of_a_histogram_is_that_of_the_lengths() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 2, 19, 20, 21, 400):
        lengths = rng.integers(0, 300, size)
        assert limit_from_counts(np.bincount(lengths, minlength=301), 100) == limit_from(lengths.tolist(), 100)
    assert limit_from_counts(np.zeros(5, np.int64), 100) == 100
