"""Which kernels can run on a device, and why the others cannot.

A kernel refuses requests that others compute better, so each is asked about an example of what it is made for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from regard.core.attention import plan
from regard.core.block_patterns import Global
from regard.core.kernels.gpu.kernels import why_no_triton
from regard.core.kernels.kernel import Kernel
from regard.core.local import LocalPredictive
from regard.core.normalizers import Hard, Sparsemax
from regard.core.patterns import Causal, Full, Window, per_head
from regard.core.plan import CPU_KERNELS, GPU_KERNELS
from regard.core.request import Request
from regard.core.scores import Additive
from regard.core.strided_patterns import Strided
from regard.doctor.facts import describe

SIZE, FEATURES = 192, 16  # queries and keys, and their features, of an example


class KernelReport(NamedTuple):
    name: str
    purpose: str
    reason: str  # why it cannot run; empty if it can

    @property
    def runs(self) -> bool:
        return not self.reason


EXAMPLES: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "few queries": ("a step of a decoder", lambda: {}),
    "small dense": ("a dozen words, softmax over products", lambda: {}),
    "dense": ("softmax over products, by torch's own attention", lambda: {}),
    "heads": ("a pattern of its own for each head", lambda: {"pattern": per_head([Full(), Causal()])}),
    "classes": ("strides, by torch's own attention", lambda: {"pattern": Strided(4)}),
    "fused additive": ("additive scores, by Triton", lambda: {"score": Additive(FEATURES, FEATURES, hidden=FEATURES)}),
    "fused": ("windows and blocks of products, by Triton", lambda: {"pattern": Window(32)}),
    "dense hard": ("hard attention over few pairs", lambda: {"normalizer": Hard()}),
    "fused hard": ("hard attention, by Triton", lambda: {"normalizer": Hard(), "pattern": Window(32)}),
    "regrouped": ("strides and dilations", lambda: {"pattern": Strided(4), "normalizer": Sparsemax()}),
    "union": ("unions with strided parts", lambda: {"pattern": Window(4) | Strided(16) | Global([0])}),
    "tiles": ("windows, globals, blocks; sparse normalizers", lambda: {"pattern": Window(32)}),
    "hard": ("hard attention", lambda: {"normalizer": Hard()}),
    "reference": ("everything", lambda: {"pattern": LocalPredictive(FEATURES, 4)}),
}
"""what each kernel is made for, and arguments of such an `attention()`"""
MODEL_KERNELS = {
    "fused recurrent encoder": "a GRU over a source, by Triton",
    "fused recurrent decoder": "all steps of a GRU decoder, by Triton",
    "fused loss": "cross-entropy over a vocabulary, by Triton",
}


def kernel_reports(device: torch.device) -> list[KernelReport]:
    """Return, for every kernel of the package, whether it can run on a device."""
    kernels: dict[str, Kernel] = {kernel.name: kernel for kernel in (*CPU_KERNELS, *GPU_KERNELS)}
    order = sorted(kernels, key=list(EXAMPLES).index)
    reports = [_report(kernels[name], device) for name in order]
    reason = why_no_triton(device) or ""
    return [*reports, *(KernelReport(name, purpose, reason) for name, purpose in MODEL_KERNELS.items())]


def _report(kernel: Kernel, device: torch.device) -> KernelReport:
    purpose = EXAMPLES[kernel.name][0]
    try:
        reason = kernel.refuse(example(kernel.name, device))
        tried = CPU_KERNELS if device.type == "cpu" else GPU_KERNELS
        if reason is None and kernel.name not in [each.name for each in tried]:
            reason = "never tried here: others are faster"
    except Exception as error:  # a broken driver or compiler may raise anything
        reason = describe(error)
    return KernelReport(kernel.name, purpose, reason or "")


def example(name: str, device: torch.device) -> Request:
    """Return a request that the kernel is made for."""
    size = 12 if name == "small dense" else SIZE
    queries = 1 if name == "few queries" else size
    query, key, value = (torch.zeros(1, 2, n, FEATURES, device=device) for n in (queries, size, size))
    options = EXAMPLES[name][1]()
    modules = {name: part.to(device) for name, part in options.items() if isinstance(part, torch.nn.Module)}
    with torch.no_grad():
        request = plan(query, key, value, **options | modules).request
    return replace(request, remembered=True) if name == "few queries" else request
