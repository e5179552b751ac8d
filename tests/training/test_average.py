"""The moving average of the weights."""

import torch
from torch import nn

from regard.training.average import AVERAGE_INTERVAL, averaged, initial_average, update_average_


def moved(updates: int, decay: float) -> tuple[nn.Linear, dict[str, torch.Tensor], list[float]]:
    """A layer whose weight is n after update n, its average, and the averages after each update."""
    layer = nn.Linear(1, 1, bias=False)
    nn.init.constant_(layer.weight, -1000.0)
    average, seen = initial_average(layer), []
    for update in range(1, updates + 1):
        nn.init.constant_(layer.weight, float(update))
        update_average_(average, layer, update, decay)
        seen.append(float(average["weight"]))
    return layer, average, seen


def test_the_initial_weights_are_forgotten_at_once() -> None:
    """A run of few updates saves what it has learned."""
    _, _, seen = moved(AVERAGE_INTERVAL, 0.999)
    assert seen == list(range(1, AVERAGE_INTERVAL + 1))


def test_it_follows_at_intervals_ever_more_slowly() -> None:
    _, _, seen = moved(20 * AVERAGE_INTERVAL, 0.999)
    assert seen[AVERAGE_INTERVAL : 2 * AVERAGE_INTERVAL - 1] == [AVERAGE_INTERVAL] * (AVERAGE_INTERVAL - 1)
    behind = [update - seen[update - 1] for update in range(AVERAGE_INTERVAL, len(seen) + 1, AVERAGE_INTERVAL)]
    assert behind == sorted(behind) and 0 < behind[1] < behind[-1]


def test_without_decay_it_is_the_weights() -> None:
    _, _, seen = moved(3 * AVERAGE_INTERVAL, 0.0)
    assert seen == list(range(1, 3 * AVERAGE_INTERVAL + 1))


def test_a_model_gets_its_own_weights_back() -> None:
    layer, average, seen = moved(3 * AVERAGE_INTERVAL, 0.999)
    with averaged(layer, average):
        assert float(layer.weight.detach()) == seen[-1]
    assert float(layer.weight.detach()) == 3 * AVERAGE_INTERVAL
