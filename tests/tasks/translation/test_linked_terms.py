"""Terms of training pairs, from their alignment."""

from regard.tasks.translation import linked_terms
from regard.tasks.translation.linked_terms import find_terms
from regard.text.pairs import Pair
from regard.text.vocabulary import TERM_MARKS
from tests.training import toy

PAIRS = toy.pairs()


def test_terms_are_words_and_their_translations() -> None:
    known = toy.SUBJECTS | toy.VERBS | {"mango": "आंबा", "book": "पुस्तक", "water": "पाणी", "house": "घर"}
    shown = [
        (pair.source[term.start : term.end], term.target)
        for pair, terms in zip(PAIRS, find_terms(PAIRS, 1), strict=True)
        for term in terms
    ]
    named = [(source, target) for source, target in shown if source in known]
    assert len(named) > 100
    assert sum(known[source] == target for source, target in named) > 0.9 * len(named)
    assert ("My friend", "माझा मित्र") in shown


def phrases(links: set[tuple[int, int]], size: int) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    return set(linked_terms._phrases(frozenset(links), size))


def test_words_are_a_term_if_they_are_linked_with_each_other_alone() -> None:
    assert phrases({(0, 1), (1, 0)}, 2) == {((0, 1), (1, 2)), ((1, 2), (0, 1)), ((0, 2), (0, 2))}
    assert phrases({(0, 0), (1, 0)}, 2) == {((0, 2), (0, 1))}, "neither word alone"
    assert phrases({(0, 0), (0, 2)}, 1) == set(), "a gap"
    assert phrases({(0, 0), (2, 1)}, 3) == {((0, 1), (0, 1)), ((2, 3), (1, 2))}, "no unlinked word inside"
    assert ((0, 4), (0, 4)) not in phrases({(n, n) for n in range(4)}, 4)
    assert phrases(set(), 3) == set()


def test_other_forms_begin_alike() -> None:
    pairs = [Pair(f"the boy {verb}", f"{form} {verb}ay", 1) for verb in "abcdefgh" for form in ("mulgaa", "mulaane")]
    pairs += [Pair(f"the cat {verb}", f"manjar {verb}ay", 1) for verb in "abcdefgh"]
    forms = {term.target: term.others for terms in find_terms(pairs, 1) for term in terms}
    assert forms["mulgaa"] == ("mulaane",) and forms["mulaane"] == ("mulgaa",) and forms["manjar"] == ()


def test_a_first_word_has_its_usual_case() -> None:
    pairs = [Pair(f"{verb} katze", f"Cats {verb}o", 1) for verb in "abcdefgh"]
    pairs += [Pair(f"katze {verb}", f"{verb}o cats", 1) for verb in "abcdefgh"]
    forms = {term.target for terms in find_terms(pairs, 1) for term in terms}
    assert "cats" in forms and "Cats" not in forms


def test_punctuation_is_in_no_term() -> None:
    pairs = [Pair("Rahul, sees", "राहुल, पाहतो", 1)] * 20
    assert {term.target for terms in find_terms(pairs, 1) for term in terms} <= {"राहुल", "पाहतो"}
    assert find_terms([], 1) == []


def test_a_source_with_a_mark_shows_no_terms() -> None:
    assert find_terms([*PAIRS, Pair(f"Rahul{TERM_MARKS[0]} sees", "राहुल पाहतो", 1)], 1)[-1] == []
