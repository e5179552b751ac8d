"""The plan: which kernel computes a request, and why the others do not."""

from __future__ import annotations

from dataclasses import dataclass

from regard.core.explanation import explain
from regard.core.kernels.cpu.tile_kernels import Regrouped, Tiles, Union
from regard.core.kernels.dense import Dense, SmallDense
from regard.core.kernels.few_queries import FewQueries
from regard.core.kernels.gpu.kernels import Classes, FusedAdditive, FusedDot, FusedHard
from regard.core.kernels.hard import DenseHard, HardChoice
from regard.core.kernels.heads import Heads, by_pattern
from regard.core.kernels.kernel import Kernel
from regard.core.reference import reference
from regard.core.request import Request
from regard.core.result import Result


class Reference(Kernel):
    """The kernel of last resort: the reference, which supports every request."""

    name = "reference"
    saves_weights = True

    def refuse(self, request: Request) -> str | None:
        return None

    def run(self, request: Request) -> Result:
        return reference(request)


def run(request: Request) -> Result:
    """Plan a request and compute it."""
    return choose(request).run()


HEADS = Heads(run)
GENERAL_KERNELS: tuple[Kernel, ...] = (Regrouped(), Union(), Tiles(), HardChoice(), Reference())
CPU_KERNELS: tuple[Kernel, ...] = (FewQueries(), SmallDense(), Dense(), HEADS, *GENERAL_KERNELS)
GPU_KERNELS: tuple[Kernel, ...] = (
    FewQueries(), Dense(), HEADS, Classes(), FusedAdditive(), FusedDot(), DenseHard(), FusedHard(), *GENERAL_KERNELS
)  # fmt: skip


def kernels(request: Request) -> tuple[Kernel, ...]:
    """Return the kernels in the order in which they are tried."""
    return GPU_KERNELS if request.query.is_cuda else CPU_KERNELS


@dataclass(frozen=True, repr=False)
class Plan:
    """The kernel chosen for a request. It does not depend on which optional outputs are requested."""

    request: Request
    kernel: Kernel
    refusals: tuple[tuple[str, str], ...]  # (kernel, reason) for every kernel that was tried before

    def run(self) -> Result:
        return self.kernel.run(self.request)

    def explain(self) -> str:
        """Return the choice, every refusal with its reason, density, FLOPs and bytes, as text."""
        groups = [(heads, plan.explain()) for heads, plan in self.by_head()]
        return explain(self.request, self.kernel, self.refusals, groups)

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"<Plan: {self.kernel.name} for {self.request!r}>"

    def by_head(self) -> list[tuple[list[int], Plan]]:
        """Return (heads, their plan) for each distinct pattern, if there is a pattern per head."""
        if not isinstance(self.kernel, Heads):
            return []
        return [(heads, choose(request)) for heads, request in by_pattern(self.request)]


def choose(request: Request) -> Plan:
    """Return the plan with the first kernel that supports the request."""
    refusals: list[tuple[str, str]] = []
    for kernel in kernels(request):
        reason = kernel.refuse(request)
        if reason is None:
            return Plan(request, kernel, tuple(refusals))
        refusals.append((kernel.name, reason))
    raise AssertionError("the reference takes everything")
