"""Forced decoding against the model's own forward pass, and the attention of beam search against it."""

import numpy as np
import pytest
import torch

from regard.models.recurrent.model import Recurrent, RecurrentOptions
from regard.search.beam import beam
from regard.search.force_decode import force_decode
from regard.search.hypothesis import LengthLimit
from regard.text.vocabulary import END, START
from tests.search.small import SHAPES, sources, translator
from tests.search.small import force_decoded as by_forward


@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_it_is_the_forward_pass(shape: int) -> None:
    model = translator(12, shape=shape)
    source, lengths = sources(5, 3, 4)
    targets = [[4, 5, 6, END], [7, END], [3, 4, 5]]
    for row, result in enumerate(force_decode(model, source, lengths, targets, k=3)):
        probabilities, weights = by_forward(model, source[row, : lengths[row]], targets[row])
        torch.testing.assert_close(torch.from_numpy(result.log_probabilities), probabilities.float())
        torch.testing.assert_close(torch.from_numpy(result.weights[0, 0]), weights.float())


def test_the_likeliest_are_those_of_the_forward_pass() -> None:
    model = translator(12)
    source, lengths = sources(4)
    (result,) = force_decode(model, source, lengths, [[4, 5, END]], k=3)
    with torch.no_grad():
        output = model(source, lengths, torch.tensor([[START, 4, 5]])).output
        probabilities = torch.softmax(model.logits(output)[0], -1)
    best = probabilities[:, END:].topk(3)
    np.testing.assert_array_equal(result.top_tokens, best.indices.numpy() + END)
    np.testing.assert_allclose(result.top_probabilities, best.values.numpy(), rtol=1e-5)


def test_nothing_to_say() -> None:
    model = translator(12)
    source, lengths = sources(4, 4)
    assert [result.weights.shape[2] for result in force_decode(model, source, lengths, [[], []])] == [0, 0]
    one, other = force_decode(model, source, lengths, [[], [END]])
    assert one.weights.shape == (1, 1, 0, 4) and other.weights.shape == (1, 1, 1, 4)


@pytest.mark.parametrize(("precision", "near"), [(None, 1e-5), (torch.bfloat16, 2e-2)], ids=["fp32", "bf16"])
def test_attention_under_beam_search_is_that_of_forced_decoding(precision: torch.dtype | None, near: float) -> None:
    torch.manual_seed(3)
    model = Recurrent(RecurrentOptions(embedding=32, encoder=24, decoder=48, attention=40), 60, 60).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)  # weights that differ from place to place
    source = torch.randint(3, 60, (8, 12))
    lengths = torch.tensor([12, 5, 9, 12, 3, 7, 11, 1])
    with torch.autocast("cpu", precision or torch.bfloat16, enabled=precision is not None):
        result = beam(model, source, lengths, LengthLimit(1.5, 3, shortest=2), width=5, best=5)
        for rank in range(5):
            chosen = [some[rank] for some in result]
            report = force_decode(model, source, lengths, [each.output_tokens for each in chosen])
            for each, again in zip(chosen, report, strict=True):
                np.testing.assert_allclose(each.weights, again.weights, atol=near, rtol=0)
                assert abs(each.log_probability - again.log_probabilities.sum()) < 40 * near
