"""Noise is a function of its counters, and looks random."""

import torch

from regard.runtime import noise


def test_same_counters_give_the_same_numbers_whatever_else_is_asked() -> None:
    i, j = torch.arange(50)[:, None], torch.arange(40)
    whole = noise.uniform(7, i, j)
    assert torch.equal(noise.uniform(7, i[10:20], j[5:9]), whole[10:20, 5:9])
    assert not torch.equal(noise.uniform(8, i, j), whole)


def test_order_of_counters_matters() -> None:
    i = torch.arange(100)
    assert (noise.bits(0, i[:, None], i) != noise.bits(0, i[:, None], i).T).float().mean() > 0.98


def test_uniform_numbers_fill_the_open_interval_evenly() -> None:
    u = noise.uniform(3, torch.arange(1000)[:, None], torch.arange(1000)).flatten()
    assert u.min() > 0 and u.max() < 1
    counts = torch.histc(u, bins=100, min=0, max=1)
    chi_squared = ((counts - 10_000) ** 2 / 10_000).sum()
    assert chi_squared < 160  # 99 degrees of freedom: above 160 once in ten thousand


def test_neighbours_are_uncorrelated() -> None:
    u = noise.uniform(11, torch.arange(500)[:, None], torch.arange(500)) - 0.5
    for shifted in (u.roll(1, 0), u.roll(1, 1)):
        assert abs(float((u * shifted).mean() / u.square().mean())) < 0.01


def test_gumbel_argmax_samples_from_softmax() -> None:
    energies = torch.tensor([1.0, 0.0, -1.0, 2.0])
    drawn = (energies + noise.gumbel(5, torch.arange(200_000)[:, None], torch.arange(4))).argmax(-1)
    fraction = torch.bincount(drawn, minlength=4) / 200_000
    assert torch.allclose(fraction, energies.softmax(0), atol=0.005)


def test_large_and_negative_seeds_are_legal() -> None:
    i = torch.arange(10)
    assert not torch.equal(noise.bits(2**40 + 1, i), noise.bits(1, i))
    assert noise.bits(-5, i).min() >= 0
