"""Greedy decoding and sampling against the model's own distribution."""

import pytest
import torch
from torch import Tensor

from regard.models.recurrent.model import Recurrent
from regard.search.hypothesis import Hypothesis, LengthLimit
from regard.search.stepwise import greedy, nucleus, sample
from regard.text.vocabulary import END, START
from tests.search.small import check_against_forward, sources, translator


def report(result: list[Hypothesis]) -> list[tuple[list[int], bool]]:
    return [(each.tokens, each.finished) for each in result]


@torch.no_grad()
def most_probable(model: Recurrent, source: Tensor, cap: int) -> tuple[list[int], bool]:
    """By the forward pass, all over again for each token."""
    tokens: list[int] = []
    while len(tokens) < cap:
        output = model(source[None], torch.tensor([len(source)]), torch.tensor([[START, *tokens]])).output
        token = END + int(model.logits(output)[0, -1, END:].argmax())
        if token == END:
            return tokens, True
        tokens.append(token)
    return tokens, False


@pytest.mark.parametrize("shape", [0, 1, 2])
def test_greedy_takes_the_most_probable_token(shape: int) -> None:
    finished = 0
    for seed in range(5):
        model = translator(12, seed, shape)
        model.output.bias.data[END] += 2
        source, lengths = sources(4, 2, 6, 1)
        result = greedy(model, source, lengths, LengthLimit(2, 1))
        for row, n in enumerate(lengths.tolist()):
            assert report(result)[row] == most_probable(model, source[row, :n], 2 * n + 1)
            check_against_forward(model, source[row, :n], result[row])
            finished += result[row].finished
    assert 0 < finished < 20  # both ways to stop were met


def test_prefixes_are_kept() -> None:
    model = translator(12, 1)
    source, lengths = sources(5, 2, 4)
    prefixes = [[7, 8, 9], [], [10] * 20]
    generator = torch.Generator().manual_seed(1)
    for result in (
        greedy(model, source, lengths, LengthLimit(1, 1), prefixes),
        sample(model, source, lengths, LengthLimit(1, 1), generator=generator, prefixes=prefixes),
    ):
        for row, prefix in enumerate(prefixes):
            assert result[row].tokens[: len(prefix)] == prefix
            check_against_forward(model, source[row, : lengths[row]], result[row])
    free = greedy(model, source, lengths, LengthLimit(1, 1))
    assert report(greedy(model, source, lengths, LengthLimit(1, 1), prefixes))[1] == report(free)[1]


@pytest.mark.parametrize("least", [0, 1, 4])
def test_least_and_most(least: int) -> None:
    model = translator(12, 3)
    source, lengths = sources(5, 2)
    model.output.bias.data[END] += 50
    for result in (
        greedy(model, source, lengths, LengthLimit(0, 6, shortest=least)),
        sample(model, source, lengths, LengthLimit(0, 6, shortest=least)),
    ):
        assert [len(each.tokens) for each in result] == [least, least]
        assert all(each.finished for each in result)
    model.output.bias.data[END] -= 100
    for result in (
        greedy(model, source, lengths, LengthLimit(1, 2)),
        sample(model, source, lengths, LengthLimit(1, 2)),
    ):
        assert [len(each.tokens) for each in result] == [7, 4]
        assert not any(each.finished for each in result)


def shares(result: list[Hypothesis], vocabulary: int) -> Tensor:
    """How often each token came first."""
    first = [each.tokens[0] if each.tokens else END for each in result]
    return torch.bincount(torch.tensor(first), minlength=vocabulary).double() / len(result)


@pytest.mark.parametrize(
    ("temperature", "top_k"), [(1.0, None), (0.5, None), (2.0, None), (1.0, 2), (0.7, 3), (1.0, 99)]
)
def test_samples_follow_the_distribution(temperature: float, top_k: int | None) -> None:
    model = translator(7, 2, sharp=0.8)
    source, lengths = sources(4)
    count = 4000
    with torch.no_grad():
        logits = model.logits(model(source, lengths, torch.tensor([[START]])).output)[0, 0]
    logits[:END] = -torch.inf
    if top_k is not None and top_k < 7:
        logits[logits < logits.topk(top_k).values[-1]] = -torch.inf
    expected = torch.softmax(logits / temperature, 0)
    result = sample(
        model, source.expand(count, -1), lengths.expand(count), LengthLimit(0, 1), temperature=temperature, top_k=top_k,
        generator=torch.Generator().manual_seed(1),
    )  # fmt: skip
    drawn = shares(result, 7)
    assert (drawn[expected == 0] == 0).all()
    torch.testing.assert_close(drawn, expected, rtol=0, atol=4 * 0.5 / count**0.5)


def test_later_tokens_follow_the_distribution_too() -> None:
    model = translator(6, 4, sharp=0.8)
    source, lengths = sources(4)
    count = 4000
    result = sample(
        model, source.expand(count, -1), lengths.expand(count), LengthLimit(0, 2, shortest=2),
        generator=torch.Generator().manual_seed(1),
    )  # fmt: skip
    pairs = torch.zeros(6, 6, dtype=torch.float64)
    for each in result:
        pairs[each.tokens[0], each.tokens[1]] += 1 / count
    expected = torch.zeros_like(pairs)
    with torch.no_grad():
        first = model.logits(model(source, lengths, torch.tensor([[START]])).output)[0, 0]
        all_probabilities = first[3:].softmax(0)
        for token in range(3, 6):
            second = model.logits(model(source, lengths, torch.tensor([[START, token]])).output)[0, 1]
            expected[token, 3:] = all_probabilities[token - 3] * second[3:].softmax(0)
    torch.testing.assert_close(pairs, expected, rtol=0, atol=4 * 0.5 / count**0.5)


def test_samples_are_what_the_forward_pass_says() -> None:
    model = translator(12, 2, sharp=0.7)
    source, lengths = sources(5, 2, 7)
    for result in (
        sample(model, source, lengths, LengthLimit(1, 2), temperature=3.0),
        sample(model, source, lengths, LengthLimit(1, 2), top_k=4),
    ):
        for row, n in enumerate(lengths.tolist()):
            check_against_forward(model, source[row, :n], result[row])


@pytest.mark.parametrize("vocabulary", [12, 700])
def test_drawing_among_one_is_greedy(vocabulary: int) -> None:
    model = translator(vocabulary, 1)
    source, lengths = sources(5, 2, 7)
    result = sample(model, source, lengths, LengthLimit(1, 2), top_k=1, temperature=5.0)
    assert report(result) == report(greedy(model, source, lengths, LengthLimit(1, 2)))


def test_the_generator_fixes_the_draw() -> None:
    model = translator(30, 1, sharp=0.3)
    source, lengths = sources(5, 2, 7)

    def drawn(seed: int) -> list[tuple[list[int], bool]]:
        return report(sample(model, source, lengths, LengthLimit(1, 2), generator=torch.Generator().manual_seed(seed)))

    assert drawn(1) == drawn(1) != drawn(2)


def test_nucleus_is_the_smallest_set_that_sums_to_p() -> None:
    probabilities = torch.tensor([[0.1, 0.5, 0.15, 0.25], [0.25, 0.25, 0.25, 0.25]], dtype=torch.float64)
    for p, expected in ((0.4, [1]), (0.5, [1]), (0.51, [1, 3]), (0.75, [1, 3]), (0.76, [1, 2, 3]), (1.0, [0, 1, 2, 3])):
        remaining = nucleus(probabilities, p)
        assert remaining[0].nonzero()[:, 0].tolist() == expected, p
        assert torch.equal(remaining[remaining > 0], probabilities[remaining > 0])
    assert (nucleus(probabilities, 0.5)[1] > 0).sum() == 2


def test_samples_with_top_p_stay_in_the_nucleus() -> None:
    model = translator(7, 0, sharp=0.3)
    source, lengths = sources(4)
    with torch.no_grad():
        logits = model.logits(model(source, lengths, torch.tensor([[START]])).output)[0, 0]
    logits[:END] = -torch.inf
    inside = nucleus(logits.softmax(0), 0.6).nonzero()[:, 0].tolist()
    assert 1 < len(inside) < 5
    count = 300
    hypotheses = sample(
        model, source.expand(count, -1), lengths.expand(count), LengthLimit(0, 1), top_p=0.6,
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    assert sorted({each.output_tokens[0] for each in hypotheses}) == inside
