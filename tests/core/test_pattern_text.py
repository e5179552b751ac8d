"""Patterns as text: what is read, and what is said of what cannot be."""

import pytest
from hypothesis import given, settings

from regard import Blocks, Causal, Dilated, Full, Global, Pattern, Strided, Window, bigbird, longformer, per_head
from regard.core.pattern_text import PatternTextError, parse
from tests.core.test_patterns import patterns


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("full", Full()),
        ("window(4) | global(0) & causal", Window(4) | (Global([0]) & Causal())),
        ("(window(4) | global(0)) & causal", (Window(4) | Global([0])) & Causal()),
        (" window( 3 ,1 )", Window(3, 1)),
        ("window(before=3, after=none)", Window(3, None)),
        ("dilated(2, gap=3) | strided(every=4)", Dilated(2, 3) | Strided(4)),
        ("longformer(4)", Window(2)),
        ("global(0, 5, 8:11)", Global([0, 5, 8, 9, 10])),
        ("longformer(512, globals=0:64, stride=64)", longformer(512, range(64), 64)),
        ("bigbird(6, [0, 1], random=1, block=4, seed=9)", bigbird(6, [0, 1], 1, 4, 9)),
        ("per_head(window(8), strided(4), full)", per_head([Window(8), Strided(4), Full()])),
        ("per_head(full, window(1)) & causal", per_head([Causal(), Window(1) & Causal()])),
        ("blocks([[0], [0, 1], []], 4)", Blocks([[0], [0, 1], []], 4)),
    ],
)
def test_reads(text: str, pattern: Pattern) -> None:
    assert parse(text) == pattern


@given(patterns)
@settings(max_examples=300, deadline=None)
def test_text_of_a_pattern_is_read_back(pattern: Pattern) -> None:
    assert parse(str(pattern)) == pattern


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a pattern at column 1"),
        ("window(4", r"expected ',' at column 9 of 'window\(4', got 'the end'"),
        ("windw(4)", "unknown name 'windw'; did you mean 'window'?"),
        ("window(4) window(2)", "expected the end of the text, & or | at column 11"),
        ("window(4) |", "expected a pattern at column 12"),
        ("window(4) ^ full", "at column 11 .* got '\\^'"),
        ("window(-4)", "got '-'"),
        ("strided(0)", "every: expected a whole number ≥ 1, got 0"),
        ("window()", r"expected window\(before, \[after\]\), got window\(\)"),
        ("window(1, 2, 3)", r"expected window\(before, \[after\]\), got window\(1, 2, 3\)"),
        ("strided(full)", "every: expected a whole number"),
        ("longformer(5)", "expected an even number, got 5"),
        ("bigbird(4)", "expected bigbird.window, globals, random, block, .seed.., got bigbird.4."),
        ("window(size=3)", r"got window\(size=3\)"),
        ("per_head()", "at least one pattern"),
        ("per_head(4)", "per_head"),
        ("global(3:2)", "expected a range that ascends, got 3:2"),
        ("window(1, before=2)", "expected window"),
        ("random(1, 2, seed=3, seed=4)", "expected 'seed' once"),
        ("window(99999999999)", "below 2³¹"),
        ("(" * 5000, "at most 50 parentheses"),
        ("blocks(3, 4)", "Blocks: table: expected a list"),
        ("global(2:)", "expected a number after ':'"),
    ],
)
def test_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        parse(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("window(4) | globl(0)", "globl"),
        ("window(4", ""),
        ("causal & strided(0)", "strided(0)"),
        ("full | window(1, 2, 3) ", "window(1, 2, 3)"),
        ("window(4) @ 3", "@"),
        ("global(0, 5:2)", "5:2"),
        ("grid(2, 3).diagonal", "diagonal"),
        ("per_head(causal) | per_head(causal, full)", "per_head(causal) | per_head(causal, full)"),
        ("full | per_head(3)", "per_head(3)"),
        ("window(" + "9" * 5000 + ")", "9" * 5000),
    ],
)
def test_errors_know_their_place(text: str, place: str) -> None:
    with pytest.raises(PatternTextError) as raised:
        parse(text)
    assert text[raised.value.start : raised.value.end] == place
    assert raised.value.start == (text.index(place) if place else len(text))
