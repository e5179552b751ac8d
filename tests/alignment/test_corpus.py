"""A corpus in groups: every word pair in its cell, equal pairs once."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.alignment import corpus as module
from regard.alignment.corpus import corpus_of

Pairs = list[tuple[list[str], list[str]]]
words = st.lists(st.sampled_from(["ab", "abcdef", "abcdeg", "x1", "xyz", "é"]), max_size=20)
corpora = st.lists(st.tuples(words, words), max_size=12).map(lambda pairs: pairs + pairs[::2])


def check(pairs: Pairs) -> None:
    corpus = corpus_of(pairs)
    seen = []
    for group in corpus.groups:
        cells = corpus.cells[group.cells].reshape(group.shape)  # [J, I, B]
        sizes = zip(group.numbers.tolist(), group.source_lengths, group.target_lengths, group.counts, strict=True)
        for row, (number, source, target, count) in enumerate(sizes):
            assert (source, target) == tuple(map(len, pairs[number]))
            real = cells[:target, :source, row].T
            result = [(corpus.sources[corpus.source_of[k]], corpus.targets[corpus.target_of[k]]) for k in real.ravel()]
            assert result == list(product(*pairs[number]))
            assert (cells[:, :, row] == len(corpus.source_of)).sum() == cells[:, :, row].size - real.size
            assert pairs.count(pairs[number]) == count
            seen.append(number)
    first = [pairs.index(each) if all(each) else number for number, each in enumerate(pairs)]
    assert corpus.first.tolist() == first
    assert sorted(seen) == sorted({number for number in first if all(pairs[number])})
    distinct = list(zip(corpus.source_of.tolist(), corpus.target_of.tolist(), strict=True))
    assert distinct == sorted(set(distinct))
    of_source = [word for source, target in pairs if source and target for word in source]
    assert corpus.source_counts.tolist() == [of_source.count(word) for word in corpus.sources]


@given(corpora)
def test_each_cell_has_its_word_pair(pairs: Pairs) -> None:
    check(pairs)


def test_more_cells_than_are_numbered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEYS", 50)
    draw = np.random.default_rng(1)
    check(
        [tuple([f"{word}" for word in draw.integers(30, size=draw.integers(1, 40))] for _ in "st") for _ in range(60)]
    )


def test_an_empty_corpus() -> None:
    assert not corpus_of([]).groups and not len(corpus_of([]).first)
    corpus = corpus_of([([], ["a"]), (["b"], [])])
    assert not corpus.groups and corpus.first.tolist() == [0, 1] and not len(corpus.cells)
