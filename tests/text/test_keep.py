"""Which things of a text are not translated."""

from __future__ import annotations

import pytest

from regard.text.keep import DEFAULT, KINDS, Keep
from regard.text.placeables import Placeable, joined, paired

ALL = Keep(KINDS)


def things(text: str, keep: Keep = ALL) -> list[str]:
    return [part.text for part in keep.parts(text) if isinstance(part, Placeable)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It cost 3.50 in 1984.", ["3.50", "1984"]),
        ("from -5 to +7, at 10:30, on 2026-11-18 or 3/4", ["-5", "+7", "10:30", "2026-11-18", "3/4"]),
        ("१२ or 1,000 or 1 000", ["१२", "1,000", "1", "000"]),
        ("B2B, mp3 and 5kg, x=5", ["5"]),
    ],
)
def test_numbers(text: str, expected: list[str]) -> None:
    assert things(text, Keep(("numbers",))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://a.org/b?c=1&d, or www.x.de.", ["https://a.org/b?c=1&d", "www.x.de"]),
        ("(at http://a.b/c_(d))", ["http://a.b/c_(d)"]),
        ("to me.you+x@mail.example.org.", ["me.you+x@mail.example.org"]),
        ("an @ sign, and www. alone", []),
    ],
)
def test_addresses(text: str, expected: list[str]) -> None:
    assert things(text, Keep(("addresses",))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <b>good</b> boy<br/>", ["<b>", "</b>", "<br/>"]),
        ('<a href="x>y" title=z>link</a> 5 < 6 > 3', ['<a href="x>y" title=z>', "</a>"]),
        ("a <!-- note --> b &amp; c &#8364;", ["<!-- note -->", "&amp;", "&#8364;"]),
        ("Hi {name}, {0:>5} {{ user.x }} ${v} {}", ["{name}", "{0:>5}", "{{ user.x }}", "${v}", "{}"]),
        ("%s and %1$s, %(n)d, %.2f; 50% of, 100%", ["%s", "%1$s", "%(n)d", "%.2f"]),
        ("**very *nice* thing**, _it_, ~~no~~", ["**", "*", "*", "**", "_", "_", "~~", "~~"]),
        ("snake_case_name, 2*3*4, a * b * c, ** no **", []),
        ("`a*b*c` and ``x ` y``", ["`a*b*c`", "``x ` y``"]),
        ("[a link](http://x.y/z_(w)) ![i](u.png) [r][s]", ["[", "](http://x.y/z_(w))", "![i](u.png)", "[", "][s]"]),
    ],
)
def test_markup(text: str, expected: list[str]) -> None:
    assert things(text, Keep(("markup",))) == expected


def test_tags_and_emphasis_are_pairs() -> None:
    parts = DEFAULT.parts("a <b>b **c** <br> d</b> [e](f)")
    texts = {joined([parts[first]]): joined([parts[last]]) for first, last in paired(parts).items()}
    assert texts == {"<b>": "</b>", "**": "**", "[": "](f)"}


def test_what_opens_or_closes_nothing_or_crosses_is_in_no_pair() -> None:
    parts = DEFAULT.parts("</i>a <b>b <i>c</b> d</i> <u>")
    assert [(parts[first].text, parts[last].text) for first, last in paired(parts).items()] == [("<b>", "</b>")]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Anna met Tom's friend in New York. Then Jean-Luc O'Brien left.", ["Tom", "New York", "Jean-Luc O'Brien"]),
        ("“Yes,” said Tom. “No!” I'm sure, NASA.", ["Tom", "NASA"]),
        ("<p>He saw 5 Anna</p>", ["<p>", "5", "Anna", "</p>"]),
    ],
)
def test_names_begin_no_sentence(text: str, expected: list[str]) -> None:
    assert things(text) == expected


def test_patterns_of_ones_own_come_first() -> None:
    assert things("Order AB-1234 of 12", Keep.parse("numbers,re:[A-Z]{2}-[0-9]+")) == ["AB-1234", "12"]


def test_noncharacters_are_things_because_they_stand_for_placeholders() -> None:
    assert things("a \ufdd0 b", Keep(("numbers",))) == ["\ufdd0"]


@pytest.mark.parametrize("text", ["", " a  5 <b> x</b>\n{y} ", "Tom & <i>Anna</b> http://x.y **", "é́ 5"])
def test_the_parts_are_the_text(text: str) -> None:
    assert joined(ALL.parts(text)) == text


def test_options_as_text() -> None:
    assert Keep.parse("numbers, markup") == Keep(("numbers", "markup"))
    assert Keep.parse("names", "numbers", "re:a,b") == Keep(("numbers", "names"), ("a,b",))
    assert Keep.parse("re:x") | Keep(("markup",)) == Keep(("markup",), ("x",))


@pytest.mark.parametrize("text", ["", "all", "numbers,", "re:(", "re:x*", "re:"])
def test_wrong_options_are_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"^keep: expected "):
        Keep.parse(text)
