"""Constrained beam search against the enumeration of everything that contains the terms."""

import pytest
import torch

from regard.search.constrained import constrained_beam
from regard.search.constraints import Automaton, Constraint
from regard.search.hypothesis import LengthLimit
from tests.search.small import check_against_forward, sources, translator
from tests.search.test_beam import all_translations


def contains(tokens: list[int], form: tuple[int, ...]) -> bool:
    return any(tuple(tokens[start : start + len(form)]) == form for start in range(len(tokens)))


def any_word(vocabulary: int) -> torch.Tensor:
    return torch.ones(vocabulary, dtype=torch.bool)


@pytest.mark.parametrize("shape", [0, 1, 2])
@pytest.mark.parametrize("forms", [((3, 4),), ((5,),), ((4, 3), (4, 5), (3,))])
def test_a_beam_that_is_wide_enough_finds_the_best_that_contains_a_term(shape: int, forms: tuple) -> None:
    model = translator(6, seed=shape, shape=shape)
    source, lengths = sources(4, 2)
    terms = [[Constraint(forms, positions=(0,))]] * 2
    length = 4 - max(map(len, forms))  # the search adds room for the term
    result = constrained_beam(model, source, lengths, LengthLimit(0, length), terms, any_word(6), width=400, best=60)
    for row, n in enumerate(lengths.tolist()):
        everything = all_translations(model, source[row, :n], 6, 4, 1.0)
        expected = [
            (tokens, score)
            for tokens, finished, score in everything
            if finished and any(contains(tokens, form) for form in forms)
        ]
        found = {tuple(each.tokens): each.score for each in result[row] if each.finished}
        best, score = expected[0]
        assert result[row][0].tokens == best
        assert found[tuple(best)] == pytest.approx(score, abs=1e-4)
        assert set(found) <= {tuple(tokens) for tokens, _ in expected}


@pytest.mark.parametrize("shape", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_hypothesis_contains_all_terms(shape: int, count: int) -> None:
    model = translator(30, shape, shape, sharp=0.6)
    source, lengths = sources(5, 2, 7)
    terms = [[Constraint(((9 + term, 12 + term, 20),), positions=(term % 2,)) for term in range(count)]] * 3
    result = constrained_beam(model, source, lengths, LengthLimit(1, 3), terms, any_word(30), width=4, best=4)
    for row, n in enumerate(lengths.tolist()):
        assert result[row]
        for each in result[row]:
            assert all(contains(each.tokens, term.forms[0]) for term in terms[row])
            check_against_forward(model, source[row, :n], each, 1.0)


def test_sentences_in_a_batch_do_not_change_each_other() -> None:
    model = translator(30, 1, sharp=0.6)
    source, lengths = sources(5, 3, 7)
    terms = [[Constraint(((9, 10),), positions=(1,))], [Constraint(((11,),))], [Constraint(((7, 8, 9), (7, 5)))]]
    together = constrained_beam(model, source, lengths, LengthLimit(1, 3), terms, any_word(30))
    for row, n in enumerate(lengths.tolist()):
        one = source[row : row + 1, :n], lengths[row : row + 1]
        alone = constrained_beam(model, *one, LengthLimit(1, 3), terms[row : row + 1], any_word(30))
        assert alone[0][0].tokens == together[row][0].tokens


def test_after_a_term_a_new_word_begins() -> None:
    model = translator(12, 1, sharp=0.6)
    begins = torch.tensor([token in (2, 5, 6) for token in range(12)])
    source, lengths = sources(6, 6, 3)
    terms = [[Constraint(((8, 9),))]] * 3
    for hypotheses in constrained_beam(model, source, lengths, LengthLimit(1, 4), terms, begins, best=5):
        for each in hypotheses:
            after = [
                each.output_tokens[place + 2]
                for place in range(len(each.tokens))
                if each.tokens[place : place + 2] == [8, 9]
            ]
            assert after and after[0] in (2, 5, 6)


def test_prefixes_come_first() -> None:
    model = translator(12, 2, sharp=0.6)
    source, lengths = sources(6, 4)
    terms = [[Constraint(((8, 9),))]] * 2
    prefixes = [[5, 6], [7]]
    result = constrained_beam(model, source, lengths, LengthLimit(1, 4), terms, any_word(12), prefixes=prefixes)
    for hypotheses, prefix in zip(result, prefixes, strict=True):
        assert hypotheses[0].tokens[: len(prefix)] == prefix
        assert contains(hypotheses[0].tokens, (8, 9))


def test_forms_that_only_an_output_may_begin_with() -> None:
    model = translator(12, 3, sharp=0.6)
    source, lengths = sources(6, 4, 5, 3)
    terms = [[Constraint(((8, 9),), initial=((10, 11),))]] * 4
    for hypotheses in constrained_beam(model, source, lengths, LengthLimit(1, 4), terms, any_word(12), best=5):
        for each in hypotheses:
            assert contains(each.tokens, (8, 9)) or each.tokens[:2] == [10, 11]


def test_the_trie_of_forms() -> None:
    automaton = Automaton.of([Constraint(((4, 5), (4, 6), (4,)))])
    (begin,) = automaton.edges[0]
    assert begin.token == 4
    assert automaton.complete[begin.node]  # the form of one token
    assert sorted((edge.token, edge.node) for edge in automaton.edges[begin.node]) == [(5, 0), (6, 0)]
    assert automaton.longest == 2
