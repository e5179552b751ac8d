"""The encoder against torch's own recurrences over packed sequences."""

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.models.recurrent.encoder import RecurrentEncoder

LENGTHS = [[5, 5, 5], [5, 2, 4], [1, 5, 3], [1, 1, 1]]


def encoder(cell: str, layers: int, bidirectional: bool) -> RecurrentEncoder:
    return RecurrentEncoder(cell, 11, 4, 3, layers, bidirectional, 0.0).double()


def drawn(lengths: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """(source [B, S] with padding, lengths, bool [B, S] where tokens are real)"""
    counts = torch.tensor(lengths)
    real = torch.arange(max(lengths)) < counts[:, None]
    return torch.randint(1, 11, real.shape) * real, counts, real


def by_torch(module: RecurrentEncoder, source: Tensor, lengths: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    packed = pack_padded_sequence(module.embedding(source), lengths, batch_first=True, enforce_sorted=False)
    states, last = module.recurrence(packed)
    states, _ = pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
    ways = 2 if module.recurrence.bidirectional else 1
    parts = last if isinstance(last, tuple) else (last,)
    joined = []
    for part in parts:  # [layers · ways, B, H], ways of a layer side by side
        rows = [torch.cat([part[ways * layer + way] for way in range(ways)], -1) for layer in range(len(part) // ways)]
        joined.append(torch.stack(rows))
    return states, tuple(joined)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_states_and_gradients_are_torchs(cell: str, layers: int, bidirectional: bool, lengths: list[int]) -> None:
    module = encoder(cell, layers, bidirectional)
    source, counts, real = drawn(lengths)
    states, last = module(source, counts)
    expected, expected_last = by_torch(module, source, counts)
    assert states.shape == expected.shape == (3, max(lengths), 6 if bidirectional else 3)
    torch.testing.assert_close(states[real], expected[real])
    torch.testing.assert_close(last, expected_last)

    seed = torch.randn_like(expected[real])
    parameters = list(module.parameters())
    mine, theirs = (
        torch.autograd.grad((s[real] * seed).sum() + sum((x**2).sum() for x in x_last), parameters)
        for s, x_last in ((states, last), (expected, expected_last))
    )
    torch.testing.assert_close(mine, theirs)


def test_the_path_for_devices_is_the_same() -> None:
    """What runs on a GPU, run here."""
    for cell in ("gru", "lstm"):
        module = encoder(cell, 2, True)
        source, counts, real = drawn([5, 2, 4])
        embedded = module.embedding(source)
        states, last = module._packed(embedded, counts)
        mine, mine_last = module._unrolled(embedded, counts)
        torch.testing.assert_close(mine[real], states[real])
        torch.testing.assert_close(mine_last, last)


def test_more_padding_changes_nothing() -> None:
    module = encoder("gru", 2, True)
    source, counts, real = drawn([5, 2, 4])
    states, last = module(source, counts)
    more, more_last = module(torch.nn.functional.pad(source, (0, 3)), counts)
    torch.testing.assert_close(more[:, :5][real], states[real])
    torch.testing.assert_close(more_last, last)


def test_what_padding_holds_changes_nothing() -> None:
    module = encoder("lstm", 1, True)
    source, counts, real = drawn([5, 2, 4])
    states, last = module(source, counts)
    other, other_last = module(torch.where(real, source, 7), counts)
    torch.testing.assert_close(other[real], states[real])
    torch.testing.assert_close(other_last, last)


def test_dropout_acts_in_training_only() -> None:
    module = RecurrentEncoder("gru", 11, 4, 3, 2, True, 0.5)
    source, counts, _ = drawn([5, 2, 4])
    assert not torch.equal(module(source, counts)[0], module(source, counts)[0])
    module.eval()
    assert torch.equal(module(source, counts)[0], module(source, counts)[0])


def test_bfloat16_autocast_stays_near() -> None:
    module = RecurrentEncoder("gru", 11, 8, 8, 1, True, 0.0)
    source, counts, real = drawn([5, 2, 4])
    with torch.autocast("cpu", torch.bfloat16):
        states, _ = module(source, counts)
    torch.testing.assert_close(states.float()[real], module(source, counts)[0][real], rtol=0.05, atol=0.03)
