"""An ensemble: the mean of its members' probabilities, computed from their own forward passes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.models.ensemble import EnsembleModel, side_by_side
from regard.models.packed_model import PackedModel
from regard.search.beam import beam
from regard.search.force_decode import force_decode
from regard.search.hypothesis import Hypothesis, LengthLimit
from regard.search.stepwise import greedy, sample
from regard.text.vocabulary import START
from tests.search.small import sources, translator
from tests.search.test_graph_replay import Counted, same, transformer

LIMIT = LengthLimit(1.5, 3, shortest=2)
MIXTURES = {
    "rnn": lambda: [translator(30, 1, sharp=0.6), translator(30, 2, 1, sharp=0.6), translator(30, 3, sharp=0.6)],
    "transformer": lambda: [transformer(), transformer(norm="post")],
    "mixed": lambda: [transformer(), translator(30, 1, sharp=0.6)],
}


def ensemble(name: str) -> EnsembleModel:
    return EnsembleModel(MIXTURES[name]()).eval()


@torch.no_grad()
def expected_log_probs(model: EnsembleModel, source: Tensor, tokens: list[int]) -> Tensor:
    """log mean softmax of the members' logits under teacher forcing, [T]."""
    target = torch.tensor([[START, *tokens[:-1]]])
    lengths = torch.tensor([len(source)])
    probabilities = [
        torch.softmax(member.logits(member(source[None], lengths, target).output), -1)[0] for member in model.models
    ]
    mean = sum(probabilities) / len(probabilities)
    return mean.log()[torch.arange(len(tokens)), torch.tensor(tokens)]  # type: ignore[union-attr]


def check(model: EnsembleModel, source: Tensor, hypothesis: Hypothesis) -> None:
    expected = expected_log_probs(model, source, hypothesis.output_tokens)
    assert hypothesis.log_probability == pytest.approx(float(expected.sum()), abs=1e-4)
    np.testing.assert_allclose(hypothesis.weights.sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("name", MIXTURES)
def test_every_search_gives_the_mean_of_the_probabilities(name: str) -> None:
    model = ensemble(name)
    torch.manual_seed(5)
    source, lengths = sources(5, 2, 9, 3)
    packed = PackedModel.of(model)
    results = [
        *beam(packed, source, lengths, LIMIT, width=4, best=4),
        *[[each] for each in greedy(packed, source, lengths, LIMIT)],
        *[[each] for each in sample(model, source, lengths, LIMIT)],
        *beam(model, source, lengths, LIMIT, width=3, prefixes=[[4, 5], [], [7], [3]]),
    ]
    for row, hypotheses in enumerate(results):
        for each in hypotheses:
            check(model, source[row % 4, : lengths[row % 4]], each)


@pytest.mark.parametrize("name", MIXTURES)
def test_forced_decoding_and_the_forward_pass_agree(name: str) -> None:
    model = ensemble(name)
    source, lengths = sources(5, 3)
    targets = [[4, 9, 2], [7, 2]]
    for row, decoding in enumerate(force_decode(PackedModel.of(model), source, lengths, targets)):
        expected = expected_log_probs(model, source[row, : lengths[row]], targets[row])
        np.testing.assert_allclose(decoding.log_probabilities, expected, atol=1e-5)
        np.testing.assert_allclose(decoding.weights.sum(-1), 1, atol=1e-5)
        for weights in decoding.self_attention.values():
            np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        assert set(decoding.self_attention) == (set() if name == "rnn" else {"encoder", "decoder"})
        with torch.no_grad():
            output = model(
                source[row : row + 1, : lengths[row]], lengths[row : row + 1], torch.tensor([[1, *targets[row]]])
            )
        torch.testing.assert_close(output.output.exp().sum(-1), torch.ones_like(output.output[..., 0]))


def test_one_best_of_a_beam_is_the_best_of_all_sequences() -> None:
    """A beam as wide as the vocabulary and two tokens at most: an exhaustive search."""
    members = [translator(6, seed, sharp=0.8) for seed in (1, 2)]
    model = EnsembleModel(members).eval()
    source, lengths = sources(4)
    (hypotheses,) = beam(model, source, lengths, LengthLimit(0, 2), width=6, best=6, penalty=0.0)
    every = [[2], *([first, 2] for first in range(3, 6))]
    scores = {tuple(tokens): float(expected_log_probs(model, source[0], tokens).sum()) for tokens in every}
    best = max(scores, key=scores.__getitem__)
    assert tuple(hypotheses[0].output_tokens) == best


@pytest.mark.parametrize("name", MIXTURES)
def test_replayed_steps_are_the_same(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    model = PackedModel.of(ensemble(name))
    source, lengths = sources(5, 2, 9, 3, 12)
    expected = beam(model, source, lengths, LIMIT, width=4, best=4)
    counted = Counted(monkeypatch)
    same(beam(model, source, lengths, LIMIT, width=4, best=4), expected)
    assert counted.steps > 1


def test_a_member_without_static_buffers_runs_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    model = EnsembleModel([transformer(), transformer(positions="alibi")]).eval()
    source, lengths = sources(5, 9)
    expected = beam(model, source, lengths, LIMIT, width=3)
    counted = Counted(monkeypatch)
    same(beam(model, source, lengths, LIMIT, width=3), expected)
    assert counted.steps == 0


def test_weights_of_equal_shapes_stand_side_by_side_and_others_as_means() -> None:
    torch.manual_seed(0)
    one, two, small = (
        torch.softmax(torch.randn(2, 3, layers, heads, 5), -1) for layers, heads in ((2, 4), (2, 4), (1, 1))
    )
    torch.testing.assert_close(side_by_side([one, two], 2), torch.cat([one, two], 3))
    mixed = side_by_side([one, small, two], 2)
    assert mixed.shape == (2, 3, 1, 3, 5)
    for weights in ([one, two], [one, small, two]):
        mean = torch.stack([each.mean((2, 3)) for each in weights]).mean(0)
        torch.testing.assert_close(side_by_side(weights, 2).mean((2, 3)), mean)
