"""n-best lists of texts: a vocabulary of letters and of pairs of them spells each text in many ways."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from regard.search import graph_replay
from regard.search.beam import beam
from regard.search.distinct import MAX_DRAWS, Wording, distinct, n_best, samples
from regard.search.hypothesis import Hypothesis, LengthLimit
from regard.search.stepwise import sample
from regard.text.vocabulary import END
from tests.search.small import check_against_forward, sources, translator

NAMES = [letter * count for letter in "ab" for count in range(1, 8)]
"""14 pieces: a run of n letters has 2^(n − 1) segmentations"""
SIZE = END + 1 + len(NAMES)


def text(tokens: Sequence[int]) -> str:
    return "".join(NAMES[token - END - 1] for token in tokens)


WORDING = Wording(text, text)


def texts(result: Sequence[Hypothesis]) -> list[str]:
    return [text(each.tokens) for each in result]


@pytest.mark.parametrize("shape", [0, 1, 2])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_n_best_are_different_texts_and_the_first_is_that_of_the_beam(shape: int, penalty: float) -> None:
    repeats = 0
    for seed in range(3):
        model = translator(SIZE, seed, shape, sharp=0.6)
        source, lengths = sources(5, 2, 7)
        plain = beam(model, source, lengths, LengthLimit(1, 2), width=5, best=5, penalty=penalty)
        repeats += sum(len(set(texts(some))) < 5 for some in plain)
        result = n_best(model, source, lengths, LengthLimit(1, 2), WORDING, 5, width=5, penalty=penalty)
        for row, (some, before) in enumerate(zip(result, plain, strict=True)):
            assert len(set(texts(some))) == len(some) == 5
            assert some[0].tokens == before[0].tokens and some[0].score == before[0].score
            ranks = [(not each.finished, -each.score) for each in some]
            assert ranks == sorted(ranks)
            for each in some:
                check_against_forward(model, source[row, : lengths[row]], each, penalty)
    assert repeats, "here nothing would have been the same anyway"


def test_a_beam_that_held_enough_texts_is_not_searched_again() -> None:
    model = translator(SIZE, 1, sharp=0.6)
    source, lengths = sources(5, 2)
    own = Wording(lambda tokens: str(tuple(tokens)), tuple)
    plain = beam(model, source, lengths, LengthLimit(1, 2), width=4, best=4)
    result = n_best(model, source, lengths, LengthLimit(1, 2), own, 4, width=4)
    assert [[each.output_tokens for each in some] for some in result] == [
        [each.output_tokens for each in some] for some in plain
    ]


def test_where_there_are_fewer_texts_fewer_are_given() -> None:
    """All that can be said in one step is one of 14 pieces, or nothing."""
    model = translator(SIZE, 2, sharp=0.6)
    source, lengths = sources(4)
    (some,) = n_best(model, source, lengths, LengthLimit(0, 1), WORDING, 20, width=20)
    assert sorted(texts(some)) == sorted(["", *NAMES])
    by_size = Wording(lambda tokens: str(len(text(tokens))), text)
    (some,) = n_best(model, source, lengths, LengthLimit(0, 1), by_size, 20, width=20)
    assert sorted(len(text(each.tokens)) for each in some) == list(range(8))


def test_the_best_segmentation_stands_for_its_text() -> None:
    model = translator(SIZE, 3, sharp=0.6)
    source, lengths = sources(4, 6)
    wider = beam(model, source, lengths, LengthLimit(0, 4), width=60, best=60)
    for some in wider:
        chosen = distinct(some, WORDING)
        for each in chosen:
            same = [other for other in some if text(other.tokens) == text(each.tokens)]
            finished = [other for other in same if other.finished]
            assert each.score == max(other.score for other in finished or same)
        assert set(texts(chosen)) == set(texts(some))


def test_recombined_beginnings_leave_room_for_others() -> None:
    """With a surface that tells nothing apart but how long a beginning is, one hypothesis goes on, as in greedy search;
    with one that tells all apart, all go on as ever."""
    model = translator(SIZE, 4, sharp=0.6)
    source, lengths = sources(5, 3)
    free = beam(model, source, lengths, LengthLimit(1, 2), width=4, best=4)
    apart = beam(model, source, lengths, LengthLimit(1, 2), width=4, best=4, surface=tuple)
    assert [[each.output_tokens for each in some] for some in free] == [
        [each.output_tokens for each in some] for some in apart
    ]
    alike = beam(model, source, lengths, LengthLimit(1, 2), width=4, best=9, surface=len)
    for some in alike:
        lengths_of = [len(each.tokens) for each in some if each.finished]
        assert len(set(lengths_of)) == len(lengths_of)


def test_prefixes_are_kept() -> None:
    model = translator(SIZE, 5, sharp=0.6)
    source, lengths = sources(5, 2, 4)
    prefixes = [[7, 8], [], [10] * 9]
    for prefix, some in zip(
        prefixes, n_best(model, source, lengths, LengthLimit(1, 1), WORDING, 4, prefixes, width=4), strict=True
    ):
        assert len(set(texts(some))) == len(some) == 4
        assert all(each.tokens[: len(prefix)] == prefix for each in some)


def test_steps_that_are_played_back_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = translator(SIZE, 6, sharp=0.6)
    source, lengths = sources(5, 2, 9)
    expected = n_best(model, source, lengths, LengthLimit(1.5, 3), WORDING, 5, width=5)
    monkeypatch.setattr(graph_replay, "can_replay", lambda device: True)
    result = n_best(model, source, lengths, LengthLimit(1.5, 3), WORDING, 5, width=5)
    assert [[each.output_tokens for each in some] for some in result] == [
        [each.output_tokens for each in some] for some in expected
    ]


def test_samples_are_different_texts() -> None:
    model = translator(SIZE, 7, sharp=0.3)
    source, lengths = sources(5, 2, 4)
    torch.manual_seed(1)
    result = samples(model, source, lengths, LengthLimit(0, 3), WORDING, 6)
    for some in result:
        assert len(set(texts(some))) == len(some) == 6
        assert [each.score for each in some] == sorted((each.score for each in some), reverse=True)
    torch.manual_seed(1)
    (first, *_) = sample(model, source, lengths, LengthLimit(0, 3))
    assert text(first.tokens) in texts(result[0]), "the first draws are those that were always drawn"


def test_sampling_what_has_one_text_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    model = translator(SIZE, 7)
    model.output.bias.data[END] += 50
    source, lengths = sources(5, 2)
    drawn = 0
    step = type(model).step

    def counted(*args: object) -> object:
        nonlocal drawn
        drawn += 1
        return step(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(type(model), "step", counted)
    result = samples(model, source, lengths, LengthLimit(0, 3), WORDING, 3)
    assert [texts(some) for some in result] == [[""], [""]] and drawn == 3 * MAX_DRAWS
