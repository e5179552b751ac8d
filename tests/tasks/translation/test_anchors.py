"""Words of training pairs that translate each other."""

from regard.tasks.translation import anchors
from regard.tasks.translation.anchors import find_anchors
from regard.text.pairs import Pair
from tests.training import toy

PAIRS = [Pair(source, target, line) for line, (source, target) in enumerate(toy.PAIRS)]


def test_anchors_are_words_and_their_translations() -> None:
    known = {"Rahul": "राहुल", "Sita": "सीता", "sees": "पाहतो", "mango": "आंबा", "book": "पुस्तक", "water": "पाणी"}
    found = [
        (pair.source[slice(*each.source)], pair.target[slice(*each.target)])
        for pair, per_pair in zip(PAIRS, find_anchors(PAIRS, 1), strict=True)
        for each in per_pair
    ]
    named = [(source, target) for source, target in found if source in known]
    assert len(named) > 60
    assert sum(known[source] == target for source, target in named) > 0.9 * len(named)


def test_a_word_is_in_one_anchor() -> None:
    for per_pair in find_anchors([*PAIRS, Pair("5 and 5 or Rahul", "Rahul 5", 1)], 1):
        assert len({each.source for each in per_pair}) == len({each.target for each in per_pair}) == len(per_pair)


def test_of_a_large_corpus_only_some_pairs_are_aligned(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(anchors, "MAX_CELLS", 200)
    found = find_anchors([*PAIRS, Pair("see 1984", "1984 पहा", 1)], 1)
    assert 0 < sum(map(bool, found)) < 40
    assert found[-1], "equal words are anchors all the same"
    assert find_anchors([], 1) == []
