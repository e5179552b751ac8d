"""Everything comes back once, exactly as it was, at its place."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from regard.alignment.projection import Projection
from regard.alignment.restore import restore
from regard.text.boundaries import word_bounds
from regard.text.keep import KINDS, Keep
from regard.text.marked import MarkedText
from regard.text.placeables import Placeable, joined, paired
from regard.text.vocabulary import PLACEHOLDERS as P

ALL = Keep(KINDS)


def projected(source: str, target: str, links: str) -> Projection:
    """Links are between words, with punctuation as words of its own."""
    sides = [[span for span in word_bounds(text, []) if text[slice(*span)].strip()] for text in (source, target)]
    weights = np.full((len(sides[1]), len(sides[0])), 0.01, np.float32)
    for link in links.split():
        first, second = map(int, link.split("-"))
        weights[second, first] = 1
    return Projection(sides[0], sides[1], weights)


def restored(text: str, translation: str, links: str, placeholders: bool = True, keep: Keep = ALL) -> str:
    marked = MarkedText.of(keep.parts(text), placeholders)
    return joined(restore(marked, translation, projected(marked.plain, translation, links)).parts)


@pytest.mark.parametrize(
    ("source", "translation", "links", "expected"),
    [
        ("A <b>good</b> boy.", "चांगला मुलगा.", "1-0 2-1 3-2", "<b>चांगला</b> मुलगा."),
        ("<b>big</b> red house", "casa roja grande", "0-2 1-1 2-0", "casa roja <b>grande</b>"),
        ("<b>not <i>at</i> all</b> big", "x a b y", "0-1 1-2 2-1 3-3", "x <b>a <i>b</i></b> y"),
        ("<p>a b.</p>", "x y.", "0-1 1-0 2-2", "<p>x y.</p>"),
        ("<b>a</b> <i>b</i>", "x", "0-0 1-0", "<b><i>x</i></b>"),
        ("<b>a</b> <b>b</b>", "x", "0-0 1-0", "<b>x</b> <b></b>"),
        ("a <b> bold </b> word", "ein fettes Wort", "0-0 1-1 2-2", "ein <b> fettes </b> Wort"),
        ("see **it** and [go](u)", "geh und sieh es", "0-2 1-3 2-1 3-0", "[geh](u) und sieh **es**"),
        ("a <b></b> b", "x y", "0-1 1-0", "<b></b> x y"),
        ("A b. <a>C d.</a> E.", "U v. W x. Y.", "0-0 1-1 2-2 3-3 4-4 5-5 6-6 7-7", "U v. <a>W x.</a> Y."),
        ("<b>A b.</b> <b>C d.</b>", "U v. W x.", "0-0 1-1 2-2 3-3 4-4 5-5", "<b>U v.</b> <b>W x.</b>"),
        ("<b>A b</b>. C d.", "U v. W x.", "0-0 1-1 2-2 3-3 4-4 5-5", "<b>U v</b>. W x."),
    ],
)
def test_pairs(source: str, translation: str, links: str, expected: str) -> None:
    assert restored(source, translation, links) == expected


@pytest.mark.parametrize(
    ("source", "translation", "links", "expected"),
    [
        ("one<br/>two", "ek do", "0-0 1-1", "ek<br/>do"),
        ("one <br/> two", "do ek", "0-1 1-0", "<br/> do ek"),
        ("a b<sup/> c", "z y x", "0-2 1-1 2-0", "z y<sup/> x"),
        ("<hr/>a b<hr/>", "y x", "0-1 1-0", "<hr/>y x<hr/>"),
        ("a </b>b", "y x", "0-1 1-0", "</b>y x"),
    ],
)
def test_points(source: str, translation: str, links: str, expected: str) -> None:
    assert restored(source, translation, links) == expected


@pytest.mark.parametrize(
    ("source", "translation", "links", "expected"),
    [
        ("has 5 keys", f"{P[0]} चाव्या", "1-0 2-1", "5 चाव्या"),
        ("has 5 keys", "चाव्या आहेत", "0-1 2-0", "5 चाव्या आहेत"),
        ("has 5 keys.", f"{P[0]} चाव्या {P[0]}.", "1-0 2-1", "5 चाव्या."),
        ("5 or 7", f"{P[1]} वा {P[0]}", "0-2 1-1 2-0", "7 वा 5"),
        ("5 or 7", f"{P[4]} वा {P[0]}", "0-2 1-1 2-0", "7 वा 5"),
        ("a 5 b", f"x{P[0]}y", "0-0", "x 5 y"),
        ("(5)", f"({P[0]})", "", "(5)"),
        ("a b", f"x {P[0]} y", "0-0 1-2", "x y"),
        ("to {x} <b>5</b>", f"{P[1]} को {P[0]}", "0-1 1-2 2-0", "<b>5</b> को {x}"),
        ("5 7", "", "", "5 7"),
        ("a {x} -5 b", "x y", "0-0 3-1", "x {x} -5 y"),
        ("a <b>5</b> b", f"x y {P[0]}", "1-1 2-0", "x y <b>5</b>"),
        ("a b. 7", f"x y.{P[0]}", "0-0 1-1", "x y. 7"),
        ("a: 10:30.", f"x:{P[0]}.", "0-0", "x: 10:30."),
        ("5 (a)", f"{P[0]}(x)", "", "5 (x)"),
        ("a/5", f"x/{P[0]}", "0-0", "x/5"),
    ],
)
def test_words_with_placeholders(source: str, translation: str, links: str, expected: str) -> None:
    assert restored(source, translation, links) == expected


@pytest.mark.parametrize(
    ("source", "translation", "links", "expected"),
    [
        ("has 5 keys", "चाव्या आहेत", "0-1 1-0", "5 चाव्या आहेत"),
        ("keys of 5.", "5 की चाव्या!", "0-2 1-1 2-3", "की चाव्या 5!"),
        ("mail me@x.org now", "agora escreve", "0-1 1-0", "me@x.org agora escreve"),
        ("saw Rahul there", "तिथे पाहिलं", "0-1 1-0", "Rahul तिथे पाहिलं"),
        ("a 5 <b>good</b> boy", "चांगला मुलगा", "1-0 2-1", "5 <b>चांगला</b> मुलगा"),
    ],
)
def test_words_of_a_model_without_placeholders(source: str, translation: str, links: str, expected: str) -> None:
    assert restored(source, translation, links, placeholders=False) == expected


PIECES = [
    "<b>",
    "</b>",
    "<i>",
    "</i>",
    "<br/>",
    "**",
    "*",
    "[",
    "](u)",
    "5",
    "77",
    "me@x.org",
    "{a}",
    "word",
    "good",
    ".",
    "(",
    "Tom",
]


@pytest.mark.parametrize("placeholders", [True, False])
def test_whatever_the_text_and_the_model_each_thing_comes_back_once(placeholders: bool) -> None:
    draw = random.Random(1)
    for _ in range(1500):
        text = "".join(draw.choice(PIECES) + draw.choice(["", " ", " "]) for _ in range(draw.randint(0, 12)))
        parts = ALL.parts(text)
        marked = MarkedText.of(parts, placeholders)
        words = ["x", "y.", "(z", "77", *P[:4]]
        translation = " ".join(draw.choice(words) for _ in range(draw.randint(0, 8)))
        projection = projected(marked.plain, translation, "")
        weights = np.random.default_rng(draw.randrange(10**6)).random(projection.weights.shape).astype(np.float32) ** 4
        projection = Projection(
            projection.source, projection.target, weights / np.maximum(weights.sum(1, keepdims=True), 1e-9)
        )
        result = restore(marked, translation, projection).parts
        before, after = (Counter(p for p in side if isinstance(p, Placeable)) for side in (parts, result))
        assert before == after, (text, translation)
        assert not any(letter in joined(result) for letter in P)
        pairs = [{(parts_[a].text, parts_[b].text) for a, b in paired(parts_).items()} for parts_ in (parts, result)]  # type: ignore[union-attr]
        assert pairs[0] <= pairs[1], (text, joined(result))
