"""Links as text, and gold files that are not what they should be."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.alignment.links import parse_gold, parse_links, read_gold, read_links, without_zero, write_links
from regard.samples import folder

links = st.frozensets(st.tuples(st.integers(0, 300), st.integers(0, 300)))


@settings(deadline=None)
@given(links)
def test_what_is_written_is_read(given_links: frozenset[tuple[int, int]]) -> None:
    assert parse_links(write_links(given_links)) == given_links


def test_written_links_are_sorted_as_numbers() -> None:
    assert write_links([(10, 0), (2, 11), (2, 3)]) == "2-3 2-11 10-0"
    assert write_links([]) == ""


def test_sure_links_are_possible_too() -> None:
    result = parse_gold("0-0 1p2 2?1 3-3 3p3")
    assert result.sure == {(0, 0), (3, 3)}
    assert result.possible == {(0, 0), (1, 2), (2, 1), (3, 3)}


@pytest.mark.parametrize("token", ["0", "0-", "-1-2", "0–1", "a-b", "0-1-2", "0_1", "1.0-2", "²-1", "0P1"])
def test_what_is_no_link_is_named_with_its_line(token: str, tmp_path: Path) -> None:
    (tmp_path / "gold").write_text(f"0-0\n1-1 {token}\n", encoding="utf-8")
    for read in (read_gold, read_links):
        with pytest.raises(ValueError, match="expected links like 0-1") as raised:
            read(tmp_path / "gold")
        assert f"{tmp_path / 'gold'}, line 2: " in str(raised.value) and repr(token) in str(raised.value)


def test_possible_links_are_gold_alone(tmp_path: Path) -> None:
    (tmp_path / "links").write_text("0p1\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"links, line 1: expected links like 0-1, got '0p1'"):
        read_links(tmp_path / "links")


def test_an_empty_line_is_a_pair_without_links(tmp_path: Path) -> None:
    (tmp_path / "links").write_text("0-0\n\n1-0 \r\n", encoding="utf-8")
    assert read_links(tmp_path / "links") == [{(0, 0)}, frozenset(), {(1, 0)}]


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_links_within_their_pairs_are_taken(tmp_path: Path) -> None:
    gold = read_gold(written(tmp_path / "gold", ["1-1", "2p2"]), [(2, 2), (3, 3)])
    assert [each.possible for each in gold] == [{(1, 1)}, {(2, 2)}]
    assert without_zero(gold) and not without_zero([*gold, parse_gold("0-7")]) and not without_zero([parse_gold("")])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0-0", "2-1"], "line 2: link 2-1 lies outside of the pair, which has 2 source and 3 target tokens"),
        (["0-0", "1-3"], "line 2: link 1-3"),
        (["0-0"], "expected a line of links for each of 2 pairs, got 1 lines"),
        (["0-0", "0-0", ""], "for each of 2 pairs, got 3"),
    ],
)
def test_links_outside_of_their_pairs_are_refused(lines: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected") as raised:
        read_gold(written(tmp_path / "gold", lines), [(2, 2), (2, 3)])
    assert message in str(raised.value) and "counts from 1" not in str(raised.value)


def test_a_file_that_counts_from_1_is_told(tmp_path: Path) -> None:
    """Lines 1 and 2 fit either way; line 3 does not, and no line has a 0."""
    path = written(tmp_path / "gold", ["1-1", "1-1 2-2", "1-1 3p3"])
    with pytest.raises(
        ValueError, match=r"gold, line 3: link 3-3 .* so it counts from 1: expected links counted from 0"
    ):
        read_gold(path, [(2, 2), (3, 3), (3, 3)])


@pytest.mark.parametrize("last", ["0-1", "1-0", "5-1"])
def test_a_0_on_any_line_or_a_link_far_outside_speaks_against_it(last: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lies outside") as raised:
        read_gold(written(tmp_path / "gold", ["3-3", last]), [(3, 3), (3, 3)])
    assert "counts from 1" not in str(raised.value)


def test_the_samples_links_fit_and_counted_from_1_are_noticed(tmp_path: Path) -> None:
    texts = [(folder() / f"links.{side}").read_text(encoding="utf-8").splitlines() for side in ("src", "tgt")]
    sizes = [(len(one.split(" ")), len(other.split(" "))) for one, other in zip(*texts, strict=True)]
    gold = read_gold(folder() / "links.talp", sizes)
    assert len(gold) == len(sizes) and sum(len(each.sure) for each in gold) > 200 and not without_zero(gold)
    shifted = [" ".join(f"{i + 1}-{j + 1}" for i, j in sorted(each.possible)) for each in gold]
    with pytest.raises(ValueError, match="counts from 1"):
        read_gold(written(tmp_path / "one", shifted), sizes)
