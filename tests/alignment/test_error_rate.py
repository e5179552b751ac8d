"""AER, precision and recall on examples worked by hand, and an interval that statistics knows."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.alignment.error_rate import error_rate
from regard.alignment.links import Gold, parse_gold, parse_links

GOLD = [parse_gold("0-0 1-1 2p2"), parse_gold("0-1 1-0 1p1")]
FOUND = [parse_links("0-0 1-1 2-2 3-0"), parse_links("0-1 1-1")]


def test_by_hand() -> None:
    """|A| = 6, |S| = 4, |A ∩ S| = 2 + 1, |A ∩ P| = 3 + 2"""
    rate = error_rate(FOUND, GOLD)
    assert rate.aer == pytest.approx(1 - (3 + 5) / (6 + 4))
    assert rate.precision == pytest.approx(5 / 6) and rate.recall == pytest.approx(3 / 4)
    assert (rate.links, rate.sentences) == (6, 2)


def test_where_only_sure_links_exist_it_is_1_minus_f1() -> None:
    rate = error_rate(FOUND, [Gold(each.sure, each.sure) for each in GOLD])
    assert rate.aer == pytest.approx(1 - 2 * rate.precision * rate.recall / (rate.precision + rate.recall))


@pytest.mark.parametrize(
    ("links", "gold", "expected"),
    [
        ("0-0 1p1", "0-0", (0.0, 1.0, 1.0)),
        ("0-0 1p1", "0-0 1-1", (0.0, 1.0, 1.0)),
        ("0-0", "", (1.0, 1.0, 0.0)),
        ("0-0", "3-3", (1.0, 0.0, 0.0)),
        ("", "", (0.0, 1.0, 1.0)),
        ("", "0-0", (1.0, 0.0, 1.0)),
    ],
)
def test_at_the_ends(links: str, gold: str, expected: tuple[float, float, float]) -> None:
    """`links` are the gold ones."""
    rate = error_rate([parse_links(gold)], [parse_gold(links)])
    assert (rate.aer, rate.precision, rate.recall) == expected
    assert rate.interval == (rate.aer, rate.aer), "one sentence is always drawn"


def test_the_interval_is_that_of_a_coin() -> None:
    """100 sentences of one link each, 30 of them wrong: AER is the share of wrong ones, of standard error √(pq/n)."""
    gold = [parse_gold("0-0")] * 100
    result = [parse_links("0-0")] * 70 + [parse_links("1-1")] * 30
    rate = error_rate(result, gold)
    error = 1.96 * math.sqrt(0.3 * 0.7 / 100)
    assert rate.aer == pytest.approx(0.3)
    assert rate.interval == (pytest.approx(0.3 - error, abs=0.015), pytest.approx(0.3 + error, abs=0.015))


def test_the_interval_follows_its_seed() -> None:
    assert error_rate(FOUND * 9, GOLD * 9, seed=3) == error_rate(FOUND * 9, GOLD * 9, seed=3)
    assert error_rate(FOUND * 9, GOLD * 9, seed=3).aer == error_rate(FOUND * 9, GOLD * 9, seed=4).aer


pairs = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(pairs, pairs, pairs), min_size=1, max_size=5))
def test_always_between_0_and_1(rows: list[tuple[frozenset[tuple[int, int]], ...]]) -> None:
    rate = error_rate([row[0] for row in rows], [Gold(row[1], row[1] | row[2]) for row in rows])
    for value in (rate.aer, rate.precision, rate.recall, *rate.interval):
        assert -1e-12 <= value <= 1
    assert rate.interval[0] - 1e-9 <= rate.interval[1]


def test_as_text_and_as_json() -> None:
    rate = error_rate(FOUND, GOLD)
    assert "AER        0.2000" in str(rate) and "precision  0.8333" in str(rate) and "recall     0.7500" in str(rate)
    assert rate.as_dict()["aer"] == rate.aer and tuple(rate.as_dict()["interval"]) == rate.interval


def test_sentences_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="expected those of 2 sentences, as many as gold has, got 1"):
        error_rate(FOUND[:1], GOLD)
    with pytest.raises(ValueError, match="at least one sentence"):
        error_rate([], [])
