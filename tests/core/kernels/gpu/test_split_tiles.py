"""Parts of tiles, put together in Triton's interpreter, against torch."""

import pytest
import torch

pytest.importorskip("triton", minversion="3.4")  # older interpreters do not know the numpy of today
from regard.core.kernels.gpu.split_tiles import PARTS_AT_ONCE, SplitTiles

SIZE, LENGTH = 8, 60


@pytest.fixture
def cut() -> tuple[SplitTiles, int]:
    """Two tiles, the last not full, in more and in fewer parts than are read at once; and how many parts there are."""
    tiles, firsts, lasts = (torch.tensor(x, dtype=torch.int32) for x in ([0, LENGTH // SIZE], [0, 37], [37, 42]))
    assert 5 < PARTS_AT_ONCE < 37
    return SplitTiles(SIZE, tiles, firsts, lasts), 42


def each(cut: SplitTiles) -> list[tuple[slice, slice]]:
    """(states, parts) of every tile"""
    lists = zip(cut.tiles.tolist(), cut.firsts.tolist(), cut.lasts.tolist(), strict=True)
    return [(slice(tile * SIZE, min(tile * SIZE + SIZE, LENGTH)), slice(*parts)) for tile, *parts in lists]


def test_sums(cut: tuple[SplitTiles, int]) -> None:
    parts, result = torch.randn(2, cut[1], SIZE, 20), torch.zeros(2, LENGTH, 20)
    expected = result.clone()
    for states, some in each(cut[0]):
        expected[:, states] = parts[:, some].sum(1)[:, : states.stop - states.start]
    cut[0].add(parts, result)
    torch.testing.assert_close(result, expected)


def test_softmaxes(cut: tuple[SplitTiles, int]) -> None:
    """As one softmax over all keys; where no part sees a key, 0 and −inf."""
    parts, sums = torch.randn(2, cut[1], SIZE, 20), torch.randn(2, cut[1], SIZE) * 5
    sums[0, ::3] = sums[1, :, 2] = -torch.inf
    context, lse = torch.zeros(2, LENGTH, 20), torch.zeros(2, LENGTH)
    expected, expected_lse = context.clone(), lse.clone()
    natural = sums * torch.log(torch.tensor(2.0))
    for states, some in each(cut[0]):
        shares = torch.softmax(natural[:, some], 1).nan_to_num(0)
        expected[:, states] = (shares[..., None] * parts[:, some]).sum(1)[:, : states.stop - states.start]
        total = torch.logsumexp(natural[:, some], 1) / torch.log(torch.tensor(2.0))
        expected_lse[:, states] = total[:, : states.stop - states.start]
    cut[0].mix(parts, sums, context, lse)
    torch.testing.assert_close(context, expected)
    torch.testing.assert_close(lse, expected_lse)


def test_choices(cut: tuple[SplitTiles, int]) -> None:
    """The highest energy; of equal ones the first key, wherever its part stands; −1 where there is none."""
    energies = torch.randint(3, (2, cut[1], SIZE)).float()
    keys = torch.randperm(2 * cut[1] * SIZE).view(2, cut[1], SIZE).int()
    nothing = torch.rand(2, cut[1], SIZE) < 0.3
    nothing[:, :, 5] = True
    energies, keys = energies.masked_fill(nothing, -torch.inf), keys.masked_fill(nothing, -1)
    best, chosen = torch.zeros(2, LENGTH), torch.zeros(2, LENGTH, dtype=torch.int32)
    cut[0].choose(energies, keys, best, chosen)
    for states, some in each(cut[0]):
        for row in range(2):
            for place in range(states.start, states.stop):
                output = zip(
                    energies[row, some, place - states.start].tolist(),
                    keys[row, some, place - states.start].tolist(),
                    strict=True,
                )
                energy, key = max(((e, -k) for e, k in output if k >= 0), default=(-torch.inf, 1))
                assert (best[row, place], chosen[row, place]) == (energy, -key)
