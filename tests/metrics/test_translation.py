"""Scores against sacrebleu's own functions, and where sacrebleu alone would stumble."""

import json
import math

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.metrics.translation import Scores, chrf_and_chance, group, score
from regard.text.pairs import Pair

SAID = ["the cat sat on the mat .", "a small dog barks", "hello there !", "no idea at all"]
KNOWN = ["the cat is on the mat .", "a little dog barks loudly", "hello there !", "I have no idea"]
OTHER = ["on the mat sits the cat .", "a small dog barks", "hi !", "none at all"]


def test_single_references_are_sacrebleu_s() -> None:
    result = score(SAID, [[known] for known in KNOWN])
    assert result.bleu == sacrebleu.corpus_bleu(SAID, [KNOWN]).score
    assert result.chrf == sacrebleu.corpus_chrf(SAID, [KNOWN], word_order=2).score
    assert result.ter == sacrebleu.corpus_ter(SAID, [KNOWN]).score
    assert result.exact == 25
    assert (result.sources, result.references) == (4, 4)
    assert "nrefs:1|" in result.signatures["bleu"] and "tok:13a" in result.signatures["bleu"]
    assert "nw:2" in result.signatures["chrf"] and "tok:tercom" in result.signatures["ter"]


def test_full_references_are_sacrebleu_s() -> None:
    result = score(SAID, list(zip(KNOWN, OTHER, strict=True)))
    assert result.bleu == sacrebleu.corpus_bleu(SAID, [KNOWN, OTHER]).score
    assert result.chrf == sacrebleu.corpus_chrf(SAID, [KNOWN, OTHER], word_order=2).score
    assert result.ter == sacrebleu.corpus_ter(SAID, [KNOWN, OTHER]).score
    assert result.exact == 50


def test_padding_adds_no_reference() -> None:
    """chrF++ takes the closest reference, so a corpus is as good as its closest single references."""
    result = score(SAID, [[KNOWN[0]], [KNOWN[1], OTHER[1]], [KNOWN[2]], [KNOWN[3]]])
    closest = [KNOWN[0], OTHER[1], KNOWN[2], KNOWN[3]]
    assert result.chrf == sacrebleu.corpus_chrf(SAID, [closest], word_order=2).score
    assert result.references == 5
    assert "nrefs:var" in result.signatures["bleu"]


def test_a_repeated_reference_changes_no_score_but_is_counted() -> None:
    once, twice = score(SAID, [[known] for known in KNOWN]), score(SAID, [[known, known] for known in KNOWN])
    assert (once.bleu, once.chrf, once.ter) == (twice.bleu, twice.chrf, twice.ter)
    assert twice.references == 8


def test_white_space_and_composition_do_not_count_case_does() -> None:
    assert score(["Caf\u00e9\u00a0?  Non "], [["Cafe\u0301 ?\u202fNon"]]).exact == 100
    assert score(["Hello."], [["hello."]]).exact == score(["Hello."], [["Hello"]]).exact == 0


def test_perfect_and_hopeless() -> None:
    best, worst = score(KNOWN, [[known] for known in KNOWN]), score(["x"] * 4, [[known] for known in KNOWN])
    assert best.bleu == pytest.approx(100) and best.chrf == pytest.approx(100)
    assert (best.ter, best.exact) == (0, 100)
    assert (worst.bleu, worst.exact) == (0, 0)


@pytest.mark.parametrize(
    ("hypotheses", "references"),
    [
        ([""], [["a b"]]),
        ([""], [[""]]),
        (["a b"], [[""]]),
        (["a", ""], [["", "a"], ["b"]]),
        (["", "a"], [["b"], ["", " ", "c"]]),
        (["\u200d"], [["\u0301"]]),
    ],
)
def test_empty_sides_give_numbers(hypotheses: list[str], references: list[list[str]]) -> None:
    result = score(hypotheses, references)
    assert all(math.isfinite(value) for value in (result.bleu, result.chrf, result.ter, result.exact))


def test_empty_equals_empty() -> None:
    assert score(["", "a"], [[" "], ["b"]]).exact == 50


texts = st.text(max_size=8)
corpora = st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=3)), min_size=1, max_size=4)


@given(corpora)
@settings(max_examples=150, deadline=None)
def test_any_text_gets_a_score(corpus: list[tuple[str, list[str]]]) -> None:
    hypotheses, references = [printed for printed, _ in corpus], [known for _, known in corpus]
    result = score(hypotheses, references)
    assert 0 <= result.bleu <= 100.001 and 0 <= result.chrf <= 100.001 and 0 <= result.exact <= 100
    assert math.isfinite(result.ter) and result.ter >= 0
    assert chrf_and_chance(hypotheses, references)[0] == result.chrf
    assert json.loads(json.dumps(result.as_dict())) == result.as_dict()


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        ([], [], "no hypothesis"),
        (["a"], [], "1 hypotheses came for 0 sources"),
        (["a", "b"], [["a"], []], r"references\[1\] is \[\]"),
        (["a"], ["a"], r"references\[0\] is 'a'"),
    ],
)
def test_what_cannot_be_scored_is_said(hypotheses: list[str], references: list[list[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score(hypotheses, references)
    with pytest.raises(ValueError, match=message):
        chrf_and_chance(hypotheses, references)


def test_tokenized_text_gives_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    score(["a b ."] * 120, [["a b ."]] * 120)
    assert not caplog.records


def test_scores_show_themselves() -> None:
    result = Scores(1.234, 50.0, 101.5, 12.5, 1_234, 2_000, {"bleu": "B", "chrf": "C", "ter": "T"})
    assert str(result).splitlines() == [
        "BLEU      1.23   B",
        "chrF++   50.00   C",
        "TER     101.50   T",
        "exact    12.50   percent of 1,234 sources, 2,000 references",
    ]
    assert result.lines() == str(result).split("\n")


def test_group_keeps_every_reference_in_order_of_first_sources() -> None:
    pairs = [Pair("b", "1", 1), Pair("a", "2", 2), Pair("b ", "3", 3), Pair("b", "1", 4), Pair("", "", 5)]
    assert group(pairs) == (["b", "a", ""], [["1", "3", "1"], ["2"], [""]])


def test_translations_that_do_not_depend_on_the_source_are_as_good_by_chance() -> None:
    references = [["¿Dónde está?", "¿Dónde estás?"], ["Hola."], ["¿Qué es esto?"], ["No lo sé.", "Ni idea."], ["Sí."]]
    own, chance = chrf_and_chance(["¿."] * 5, references)
    assert own == chance > 0
    right = [known[0] for known in references]
    own, chance = chrf_and_chance(right, references)
    assert own == score(right, references).chrf == pytest.approx(100)
    assert chance == score([*right[2:], *right[:2]], references).chrf < 40
