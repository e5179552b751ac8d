"""Symmetrizations beside a word by word reading of their definition, on examples and in what must hold."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.alignment.links import Link, parse_links
from regard.alignment.symmetrize import NEIGHBOURS, SYMMETRIZATIONS, symmetrize

SIZE = 6
some = st.frozensets(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=14)


def by_the_paper(forward: frozenset[Link], backward: frozenset[Link], final: str) -> set[Link]:
    """Koehn et al. (2003), figure 2, with loops over all words as it has them."""
    links = set(forward & backward)
    cells = [(e, f) for e in range(SIZE) for f in range(SIZE)]

    def bare(e: int, f: int) -> list[bool]:
        return [e not in {source for source, _ in links}, f not in {target for _, target in links}]

    grown = True
    while grown:
        before = len(links)
        for e, f in cells:
            if (e, f) in links:
                for down, right in NEIGHBOURS:
                    new = e + down, f + right
                    if any(bare(*new)) and new in forward | backward:
                        links.add(new)
        grown = len(links) > before
    for direction in (forward, backward) if final else ():
        for cell in cells:
            if {"or": any, "and": all}[final](bare(*cell)) and cell in direction:
                links.add(cell)
    return links


@settings(max_examples=400, deadline=None)
@given(some, some)
def test_as_the_paper_defines_it(forward: frozenset[Link], backward: frozenset[Link]) -> None:
    for how, final in (("grow-diag", ""), ("grow-diag-final", "or"), ("grow-diag-final-and", "and")):
        assert symmetrize(forward, backward, how) == by_the_paper(forward, backward, final)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("intersection", "0-0 1-1"),
        ("union", "0-0 1-1 1-2 2-1 4-4 4-5 6-1"),
        # 1-2 and 2-1 touch 1-1, and each joins a word that had none; 6-1 touches nothing
        ("grow-diag", "0-0 1-1 1-2 2-1"),
        # 4-4 joins two bare words; then 4-5 and 6-1 join one each
        ("grow-diag-final", "0-0 1-1 1-2 2-1 4-4 4-5 6-1"),
        ("grow-diag-final-and", "0-0 1-1 1-2 2-1 4-4"),
    ],
)
def test_worked_by_hand(how: str, expected: str) -> None:
    forward, backward = parse_links("0-0 1-1 2-1 4-4"), parse_links("0-0 1-1 1-2 4-5 6-1")
    assert symmetrize(forward, backward, how) == parse_links(expected)  # type: ignore[arg-type]


def test_a_chain_grows_link_by_link_and_also_backwards() -> None:
    """Each link touches only the one before it: those against the order of the sweep need a sweep each."""
    chain = parse_links("0-5 1-4 2-3 3-2 4-1 5-0")
    for seed in ("0-5", "5-0", "3-2"):
        assert symmetrize(chain, parse_links(seed), "grow-diag") == chain


@settings(deadline=None)
@given(some, some)
def test_each_lies_between_intersection_and_union(forward: frozenset[Link], backward: frozenset[Link]) -> None:
    result = {how: symmetrize(forward, backward, how) for how in SYMMETRIZATIONS}
    assert result["intersection"] <= result["grow-diag"]
    assert result["grow-diag"] <= result["grow-diag-final-and"] <= result["union"]
    assert result["grow-diag"] <= result["grow-diag-final"] <= result["union"]


@settings(deadline=None)
@given(some)
def test_two_directions_that_agree_stay_as_they_are(links: frozenset[Link]) -> None:
    assert all(symmetrize(links, links, how) == links for how in SYMMETRIZATIONS)


def test_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected one of intersection, union, .*, got 'grow'"):
        symmetrize([], [], "grow")  # type: ignore[arg-type]
