"""The exponential moving average (EMA) of the weights, which is validated and saved as the model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

AVERAGE_INTERVAL = 8  # updates between two updates of the moving average


def initial_average(model: nn.Module) -> dict[str, Tensor]:
    """Return a copy of the weights by name."""
    return {name: tensor.detach().clone() for name, tensor in model.named_parameters()}


def update_average_(average: dict[str, Tensor], model: nn.Module, update: int, decay: float) -> None:
    """Take in the weights after so many updates; with `decay` 0 per update the average is the weights.

    The decay rises to its value over the first updates. Before the first interval is over, the average is the weights:
    the initial ones are random.
    """
    if decay and update > AVERAGE_INTERVAL and update % AVERAGE_INTERVAL:
        return
    count = update / AVERAGE_INTERVAL
    rising = (1 + count) / (10 + count) if update > AVERAGE_INTERVAL else 0.0
    decayed = min(decay**AVERAGE_INTERVAL, rising)
    with torch.no_grad():
        torch._foreach_lerp_(list(average.values()), list(model.parameters()), 1 - decayed)


@contextmanager
def averaged(model: nn.Module, average: dict[str, Tensor]) -> Iterator[None]:
    """Give the model the averaged weights for as long as the context lasts."""
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        weights = {name: parameter.clone() for name, parameter in parameters.items()}
        for name, parameter in parameters.items():
            parameter.copy_(average[name])
        try:
            yield
        finally:
            for name, parameter in parameters.items():
                parameter.copy_(weights[name])
