"""Every kernel is listed, with what it is for and why it cannot run."""

from __future__ import annotations

import pytest
import torch

from regard.core.kernels.gpu.kernels import FusedDot
from regard.core.plan import CPU_KERNELS, GPU_KERNELS
from regard.doctor.kernels import EXAMPLES, MODEL_KERNELS, example, kernel_reports

CPU = torch.device("cpu")


def test_every_kernel_of_the_plan_has_an_example() -> None:
    assert set(EXAMPLES) == {kernel.name for kernel in (*CPU_KERNELS, *GPU_KERNELS)}


def test_kernels_on_a_cpu() -> None:
    reports = {report.name: report for report in kernel_reports(CPU)}
    assert set(reports) == {*EXAMPLES, *MODEL_KERNELS}
    assert all(reports[kernel.name].runs for kernel in CPU_KERNELS), [
        each for each in reports.values() if not each.runs
    ]
    for name in ("fused", "fused additive", "fused hard", "classes", *MODEL_KERNELS):
        assert reports[name].reason == "not on a GPU"
    assert not reports["dense hard"].runs


@pytest.mark.parametrize("kernel", CPU_KERNELS, ids=lambda kernel: kernel.name)
def test_a_kernel_computes_its_example(kernel: object) -> None:
    request = example(kernel.name, CPU)  # type: ignore[attr-defined]
    with torch.no_grad():
        assert kernel.run(request).context.shape[-1] == 16  # type: ignore[attr-defined]


def test_a_kernel_that_raises_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError("no ptxas")

    monkeypatch.setattr(FusedDot, "refuse", broken)
    assert {report.name: report.reason for report in kernel_reports(CPU)}["fused"] == "OSError: no ptxas"
