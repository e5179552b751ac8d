"""The plain text that a model reads, and where things stood in it."""

from __future__ import annotations

from regard.text.keep import Keep
from regard.text.marked import MarkedText
from regard.text.normal import tidy
from regard.text.vocabulary import PLACEHOLDERS as P

KEEP = Keep(("numbers", "addresses", "markup"))


def marked(text: str, placeholders: bool = True) -> MarkedText:
    return MarkedText.of(KEEP.parts(text), placeholders)


def test_words_become_placeholders() -> None:
    text = marked("He  has 5 keys, or 7.")
    assert text.plain == f"He has {P[0]} keys, or {P[1]}."
    assert [(word.placeable.text, text.plain[word.start : word.end]) for word in text.words] == [
        ("5", P[0]),
        ("7", P[1]),
    ]
    assert [(word.space_before, word.space_after) for word in text.words] == [(True, True), (True, False)]


def test_more_words_than_placeholders_use_them_again() -> None:
    text = marked(" ".join(map(str, range(100, 100 + len(P) + 2))))
    assert text.plain == " ".join([*P, P[0], P[1]])


def test_without_placeholders_words_are_taken_out() -> None:
    text = marked("Mail me@x.org, or 5 to {name}.", placeholders=False)
    assert text.plain == "Mail, or to."
    words = [(word.placeable.text, word.start, word.end) for word in text.words]
    assert words == [("me@x.org", 4, 4), ("5", 9, 9), ("{name}", 11, 11)]


def test_words_can_be_taken_out_one_by_one() -> None:
    text = MarkedText.of(KEEP.parts("5 or 7"), True, removed=[0])
    assert text.plain == f"or {P[1]}" and text.missing("x") == [1] and text.missing(P[1]) == []


def test_pairs_enclose_words_of_the_plain_text() -> None:
    text = marked("Rahul is <b>a <i> good </i>boy</b>.")
    assert text.plain == "Rahul is a good boy."
    assert [text.plain[pair.start : pair.end] for pair in text.pairs] == ["a good boy", "good"]
    assert text.pairs[1].opening[1:] == (" ",) and text.pairs[1].closing[:1] == (" ",)


def test_points_and_pairs_without_words_are_taken_out() -> None:
    text = marked('one<br/>two <a name="x"> </a> three</b>')
    assert text.plain == "one two three"
    starts = [(point.start, point.before, point.space_before, point.space_after) for point in text.points]
    assert starts == [(4, 3, False, False), (8, 7, True, True), (13, 13, False, True)]
    assert len(text.points[1].parts) == 3


def test_the_plain_text_is_tidied() -> None:
    for text in ("\u00a0a <b>\u2028b</b>  ", "e<b>\u0301</b> x", "", "<b></b>", " <i> x</i>y"):
        plain = marked(text).plain
        assert plain == tidy(plain)
        assert all(0 <= pair.start <= pair.end <= len(plain) for pair in marked(text).pairs)
