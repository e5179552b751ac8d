"""Beam search against the enumeration of everything, and against itself written out."""

from itertools import product

import pytest
import torch
from torch import Tensor

from regard.models.recurrent.model import Recurrent
from regard.search.beam import beam
from regard.search.hypothesis import Hypothesis, LengthLimit
from regard.search.stepwise import greedy
from regard.text.vocabulary import END, START
from tests.search.small import check_against_forward, sources, translator


def report(result: list[Hypothesis]) -> list[tuple[list[int], bool]]:
    return [(each.tokens, each.finished) for each in result]


@torch.no_grad()
def next_chances(model: Recurrent, source: Tensor, message: list[list[int]]) -> Tensor:
    """log p of every token after each of several beginnings of one length: [N, V]."""
    target = torch.tensor([[START, *tokens] for tokens in message])
    count = len(message)
    output = model(source.expand(count, -1), torch.full((count,), len(source)), target).output
    return model.logits(output[:, -1]).log_softmax(-1)


def all_translations(
    model: Recurrent, source: Tensor, vocabulary: int, cap: int, penalty: float
) -> list[tuple[list[int], bool, float]]:
    """(tokens, whether they end, score) of everything that can be said in `cap` steps, in the order of search."""
    totals: dict[tuple[int, ...], float] = {(): 0.0}
    result = []
    for count in range(cap):
        message = [list(tokens) for tokens in product(range(END + 1, vocabulary), repeat=count)]
        for tokens, probabilities in zip(message, next_chances(model, source, message).tolist(), strict=True):
            total = totals[tuple(tokens)]
            result.append((tokens, True, (total + probabilities[END]) / (count + 1) ** penalty))
            totals |= {(*tokens, token): total + probabilities[token] for token in range(END + 1, vocabulary)}
    result += [(list(tokens), False, totals[tokens] / cap**penalty) for tokens in totals if len(tokens) == cap]
    return sorted(result, key=lambda each: (not each[1], -each[2]))


@pytest.mark.parametrize("shape", [0, 1, 2])
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
def test_a_beam_that_is_wide_enough_finds_everything(shape: int, penalty: float) -> None:
    model = translator(6, seed=shape, shape=shape)
    source, lengths = sources(4, 2)
    result = beam(model, source, lengths, LengthLimit(0, 3), width=60, best=40, penalty=penalty)
    for row, n in enumerate(lengths.tolist()):
        expected = all_translations(model, source[row, :n], 6, 3, penalty)
        assert len(expected) == 1 + 3 + 9 + 27
        assert report(result[row]) == [(tokens, finished) for tokens, finished, _ in expected]
        torch.testing.assert_close([x.score for x in result[row]], [x for *_, x in expected], rtol=1e-4, atol=1e-4)


def written_out(model: Recurrent, source: Tensor, cap: int, width: int, penalty: float) -> list[tuple[list[int], bool]]:
    """Beam search with lists: an end top_k the k best is set aside, the k best that do not end go on."""
    going: list[tuple[float, list[int]]] = [(0.0, [])]
    ended: list[tuple[bool, float, list[int]]] = []
    for time in range(1, cap + 1):
        grown = []
        probabilities = next_chances(model, source, [tokens for _, tokens in going]).tolist()
        for (total, tokens), row in zip(going, probabilities, strict=True):
            grown += [(total + row[token], [*tokens, token]) for token in range(END, len(row))]
        grown = sorted(grown, reverse=True)[: 2 * width]
        ended += [(True, x / time**penalty, tokens[:-1]) for x, tokens in grown[:width] if tokens[-1] == END]
        going = [(x, tokens) for x, tokens in grown if tokens[-1] != END][:width]
        if time == cap:
            ended += [(False, x / time**penalty, tokens) for x, tokens in going]
        if len(ended) >= width:
            break
    ranked = sorted(ended, key=lambda each: (not each[0], -each[1]))[:width]
    return [(tokens, finished) for finished, _, tokens in ranked]


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("shape", [0, 1, 2])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_as_written_out(width: int, shape: int, penalty: float) -> None:
    for seed in range(2):
        model = translator(12, seed, shape, sharp=0.7)
        source, lengths = sources(4, 5, 2)
        result = beam(model, source, lengths, LengthLimit(1, 2), width=width, best=width, penalty=penalty)
        for row, n in enumerate(lengths.tolist()):
            assert report(result[row]) == written_out(model, source[row, :n], n + 2, width, penalty)


@pytest.mark.parametrize("shape", [0, 1, 2])
def test_a_beam_of_one_is_greedy(shape: int) -> None:
    for seed in range(4):
        model = translator(12, seed, shape, sharp=0.7)
        source, lengths = sources(4, 6, 2, 7)
        wider = beam(model, source, lengths, LengthLimit(1, 3), width=1)
        for one, other in zip(wider, greedy(model, source, lengths, LengthLimit(1, 3)), strict=True):
            assert report(one) == report([other])
            assert one[0].log_probability == pytest.approx(other.log_probability, abs=1e-5)
            assert one[0].score == pytest.approx(other.score, abs=1e-5)
            assert (one[0].weights == other.weights).all()


@pytest.mark.parametrize("shape", [0, 1, 2])
@pytest.mark.parametrize("penalty", [0.0, 1.0, 1.5])
def test_hypotheses_are_what_the_forward_pass_says(shape: int, penalty: float) -> None:
    model = translator(30, shape, shape, sharp=0.6)
    source, lengths = sources(5, 2, 7)
    result = beam(model, source, lengths, LengthLimit(1, 2), width=4, best=4, penalty=penalty)
    for row, n in enumerate(lengths.tolist()):
        assert len(result[row]) == 4
        for each in result[row]:
            check_against_forward(model, source[row, :n], each, penalty)
            assert len(each.tokens) <= n + 2 - each.finished


def test_n_best_are_sorted_and_distinct() -> None:
    for seed in range(4):
        model = translator(30, seed, sharp=0.6)
        source, lengths = sources(5, 3)
        for some in beam(model, source, lengths, LengthLimit(1, 2), width=6, best=6):
            assert len({(tuple(each.tokens), each.finished) for each in some}) == len(some) == 6
            assert [(not x.finished, -x.score) for x in some] == sorted((not x.finished, -x.score) for x in some)
        best = beam(model, source, lengths, LengthLimit(1, 2), width=6, best=2)
        whole = beam(model, source, lengths, LengthLimit(1, 2), width=6, best=6)
        assert [report(some) for some in best] == [report(some)[:2] for some in whole]


@pytest.mark.parametrize("shape", [0, 1, 2])
def test_a_batch_is_each_by_itself(shape: int) -> None:
    model = translator(30, shape, shape, sharp=0.6)
    source, lengths = sources(5, 2, 9, 1)
    whole = beam(model, source, lengths, LengthLimit(1, 1), width=3, best=3)
    for row, n in enumerate(lengths.tolist()):
        (alone,) = beam(model, source[row : row + 1, :n], lengths[row : row + 1], LengthLimit(1, 1), width=3, best=3)
        assert report(alone) == report(whole[row])
        for one, other in zip(alone, whole[row], strict=True):
            assert one.log_probability == pytest.approx(other.log_probability, abs=1e-5)
            torch.testing.assert_close(torch.from_numpy(one.weights), torch.from_numpy(other.weights))


@pytest.mark.parametrize("width", [1, 4])
def test_prefixes_are_kept(width: int) -> None:
    model = translator(30, 1, sharp=0.6)
    source, lengths = sources(5, 2, 4)
    prefixes = [[7, 8, 9], [], [10] * 20]
    result = beam(model, source, lengths, LengthLimit(1, 1), width=width, best=width, prefixes=prefixes)
    free = beam(model, source, lengths, LengthLimit(1, 1), width=width, best=width)
    assert report(result[1]) == report(free[1])
    for row, prefix in enumerate(prefixes):
        assert result[row]
        for each in result[row]:
            assert each.tokens[: len(prefix)] == prefix
            check_against_forward(model, source[row, : lengths[row]], each)


def test_a_prefix_that_is_the_best_anyway_changes_nothing() -> None:
    model = translator(30, 2, sharp=0.6)
    source, lengths = sources(5)
    limit = LengthLimit(0, 6, shortest=4)
    free = beam(model, source, lengths, limit, width=1)[0][0]
    locked = beam(model, source, lengths, limit, width=1, prefixes=[free.tokens[:3]])[0][0]
    assert locked.tokens == free.tokens and locked.log_probability == pytest.approx(free.log_probability)


@pytest.mark.parametrize("least", [0, 1, 3, 5])
def test_nothing_is_shorter_than_the_least(least: int) -> None:
    model = translator(12, 3)
    model.output.bias.data[END] += 20  # would end at once
    source, lengths = sources(5, 2)
    for some in beam(model, source, lengths, LengthLimit(0, 5, shortest=least), width=3, best=3):
        assert min(len(each.tokens) for each in some) == least
        assert len(some[0].tokens) == least


def test_nothing_is_longer_than_the_cap() -> None:
    model = translator(12, 3)
    model.output.bias.data[END] -= 50  # would never end
    source, lengths = sources(5, 2)
    for n, some in zip((5, 2), beam(model, source, lengths, LengthLimit(2, 1), width=3, best=3), strict=True):
        assert [len(each.tokens) for each in some] == [2 * n + 1] * 3
        assert not any(each.finished for each in some)
        assert all(each.weights.shape == (1, 1, 2 * n + 1, n) for each in some)


def test_ended_hypotheses_come_before_those_cut_off() -> None:
    model = translator(12, 4, sharp=0.7)
    source, lengths = sources(3, 5, 6)
    for some in beam(model, source, lengths, LengthLimit(0, 3), width=5, best=5):
        finished = [each.finished for each in some]
        assert finished == sorted(finished, reverse=True)


def test_weights_add_up_to_1() -> None:
    model = translator(30, 5, sharp=0.6)
    source, lengths = sources(5, 2)
    for n, some in zip((5, 2), beam(model, source, lengths, LengthLimit(1, 2), width=3, best=3), strict=True):
        for each in some:
            assert each.weights.shape == (1, 1, len(each.tokens) + each.finished, n)
            torch.testing.assert_close(torch.from_numpy(each.weights.sum(-1)), torch.ones(each.weights.shape[:-1]))
