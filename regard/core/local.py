"""Luong's local attention (Luong, Pham and Manning 2015): attend near one position of the source."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.core.checks import whole_number
from regard.core.patterns import Full, Pattern, PerHead, Window
from regard.core.scores import at_least_float32
from regard.runtime.precision import without_autocast


def LocalMonotonic(reach: int) -> Window:  # a function, named like the pattern that it returns
    """Return the pattern of local-m, for roughly monotonic alignment: `Window(reach)`, read at `position=t`."""
    return Window(reach)


class LocalPredictive(nn.Module):
    """Local-p: the position to attend to is predicted from the query.

        p = length · σ(vᵀ tanh(W q))          mask |j − p| ≤ D,   gain exp(−(j − p)² / (2 (D/2)²))

    It is passed as `pattern`. The gain multiplies the weights after normalizing, as in the paper, so they no longer sum
    to 1; p is trained through it. It combines with patterns by `&` only: a query attends near p and where they allow.
    """

    def __init__(self, query_dim: int, reach: int, hidden: int | None = None, within: Pattern | None = None) -> None:
        super().__init__()
        self.query_dim = whole_number("LocalPredictive", "query_dim", query_dim, minimum=1)
        self.reach = whole_number("LocalPredictive", "reach", reach, minimum=1)
        self.within = Full() if within is None else within
        if not isinstance(self.within, Pattern):
            raise TypeError(f"LocalPredictive: within: expected a pattern, got {within!r}")
        self.inner = nn.Linear(query_dim, hidden or query_dim, bias=False)
        self.outer = nn.Linear(hidden or query_dim, 1, bias=False)

    def __and__(self, other: Pattern) -> LocalPredictive:
        if not isinstance(other, Pattern):
            return NotImplemented
        narrowed = LocalPredictive.__new__(LocalPredictive)
        nn.Module.__init__(narrowed)
        narrowed.query_dim, narrowed.reach, narrowed.within = self.query_dim, self.reach, self.within & other
        narrowed.inner, narrowed.outer = self.inner, self.outer  # the same parameters, not copies
        return narrowed

    __rand__ = __and__

    def __or__(self, other: object) -> LocalPredictive:
        raise TypeError("pattern | …: LocalPredictive combines by & only: its gain has no meaning outside its window")

    __ror__ = __or__

    def focus(self, query: Tensor, real_keys: Tensor, keys: int) -> tuple[Tensor, Tensor]:
        """Return the mask, bool, and the gain, both [..., T, S], of query [..., T, Dq].

        real_keys, how many keys are real, broadcasts to [..., T, 1].
        """
        query = at_least_float32(query)  # in half precision a position in a long text would be off by several keys
        with without_autocast(query.device):
            hidden = torch.tanh(query @ self.inner.weight.to(query.dtype).mT)
            centre = real_keys * torch.sigmoid(hidden @ self.outer.weight.to(query.dtype).mT)  # [..., T, 1]
        distance = torch.arange(keys, device=query.device) - centre  # [..., T, S]
        gain = torch.exp(-(distance**2) / (2 * (self.reach / 2) ** 2))
        return distance.abs() <= self.reach, gain

    def extra_repr(self) -> str:
        return f"reach={self.reach}, within={self.within}"


def heads_of(pattern: Pattern | LocalPredictive) -> int | None:
    """Return how many heads the pattern is made for; None: any number."""
    inner = pattern.within if isinstance(pattern, LocalPredictive) else pattern
    return len(inner.patterns) if isinstance(inner, PerHead) else None
