"""The interface of kernels: a kernel computes a request, or returns the reason why not."""

from __future__ import annotations

from abc import ABC, abstractmethod

from regard.core.request import Request
from regard.core.result import Result


class Kernel(ABC):
    """One way to compute attention."""

    name: str
    saves_weights = False  # whether all weights, and the energies twice, are saved for the backward pass

    @abstractmethod
    def refuse(self, request: Request) -> str | None:
        """Return why this kernel cannot or should not compute the request; None if it can."""

    @abstractmethod
    def run(self, request: Request) -> Result:
        """Return the context, and what the kernel computes anyway: weights, lse, for Hard `chosen` and
        `log_probability`. observe.py computes what else is requested."""

    def computed_pairs(self, request: Request) -> int:
        """Return how many pairs of a query and a key are computed for each row of the batch."""
        return request.queries * request.keys
