"""What is carried over, and what is left alone."""

import re

import numpy as np
import pytest

from regard.alignment.carry import DEFAULT_KINDS, carry, carry_over, read_kinds
from regard.alignment.links import parse_links
from regard.look.trace import Span
from tests.look.test_trace import traced


def carried(source: str, target: str, links: str, kinds: tuple[str, ...] = DEFAULT_KINDS) -> str:
    return carry(source, target, parse_links(links), kinds)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "target", "links", "expected"),
    [
        ("in 1984 .", "en 1948 .", "0-0 1-1 2-2", "en 1984 ."),
        ("in 1984.", "en 1948 !", "1-1", "en 1984 !"),
        ("(1984)", "« 1948 »,", "0-1", "« 1984 »,"),
        ("-5 degrees", "moins degrés", "0-0 1-1", "-5 degrés"),
        (
            "see https://a.org/b?c=1&d now",
            "voir http://aorg , maintenant",
            "1-1 2-3",
            "voir https://a.org/b?c=1&d , maintenant",
        ),
        ("to me@example.org.", "à moi@exemple.fr.", "1-1", "à me@example.org."),
        ("<b> bold </b>", "< gras /b>", "0-0 1-1 2-2", "<b> gras </b>"),
        ("Hello {name} , %s", "Bonjour {nom} , s", "0-0 1-1 2-2 3-3", "Bonjour {name} , %s"),
        ("a &nbsp; b", "a x b", "1-1", "a &nbsp; b"),
    ],
)
def test_what_is_linked_is_replaced(source: str, target: str, links: str, expected: str) -> None:
    assert carried(source, target, links) == expected


@pytest.mark.parametrize(
    ("source", "target", "links"),
    [
        ("He has 5 keys", "त्याच्याकडे ५ किल्ल्या आहेत", "2-1"),
        ("3.14 or 1,000", "3,14 oder 1.000", "0-0 2-2"),
        ("in 1984", "en 1948", "0-0"),
        ("in 1984 .", "en l'an 1984 !", "1-1 1-2"),
        ("a good year", "une bonne année", "0-0 1-1 2-2"),
        ("5 keys", "किल्ल्या", "0-0 1-0"),
        ("Rahul is here", "राहुल इथे आहे", "0-0 1-2 2-1"),
        ("  two   blanks 7", "deux  blancs   7", "2-2"),
        ("", "", ""),
    ],
)
def test_what_says_the_same_or_is_not_linked_stays(source: str, target: str, links: str) -> None:
    """The same number in other digits; no link; one linked token that is right; a token that belongs to others too."""
    assert carried(source, target, links) == target


def test_one_token_takes_one_place() -> None:
    """Of its kind, if there is one; else the first that belongs to it alone."""
    assert carried("at 10 o'clock", "um zehn 11 Uhr", "1-1 1-2 1-3") == "um zehn 10 Uhr"
    assert carried("at 10 o'clock", "um zehn Uhr", "1-1 1-2 2-2") == "um 10 Uhr"
    assert carried("1 2", "drei", "0-0 1-0") == "drei"
    assert carried("1 2", "3 x", "0-0 1-0 1-1") == "1 2"


def test_names_are_carried_if_asked_for() -> None:
    source, target, links = "Today Smith met Anna .", "Heute traf Schmidt Ana .", "0-0 1-2 2-1 3-3 4-4"
    assert carried(source, target, links) == target
    assert carried(source, target, links, ("names",)) == "Heute traf Smith Anna ."
    assert carried("In 5 days", "In 6 Tagen", "1-1", ("names",)) == "In 6 Tagen"


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="kinds: expected some of numbers, addresses, markup, names, got 'dates'"):
        carried("a", "b", "", ("dates",))
    with pytest.raises(ValueError, match="links: expected places below 1-1, got 0-1"):
        carried("5", "6", "0-1")


def test_kinds_as_text() -> None:
    assert read_kinds(None) == () and read_kinds("markup, numbers") == ("numbers", "markup")
    with pytest.raises(ValueError, match="got 'colours'"):
        read_kinds("numbers,colours")


def test_a_trace_carries_over_through_its_own_weights() -> None:
    source, target = "Call 5551 now .", "आता 1 वर ."
    weights = np.array(
        [[0, 0, 1, 0, 0], [0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]], np.float32
    )
    sides = [
        [
            *(Span(result.group(), result.start(), result.end()) for result in re.finditer(r"\S+", text)),
            Span("", len(text), len(text)),
        ]
        for text in (source, target)
    ]
    assert carry_over(traced(source, target, *sides, weights)) == "आता 5551 वर ."
