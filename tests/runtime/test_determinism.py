"""Deterministic algorithms, and cumulative sums without torch's own."""

from __future__ import annotations

import pytest
import torch
from torch.utils import deterministic as torch_deterministic

from regard.runtime import determinism
from regard.runtime.determinism import cumulative_sum, deterministic_algorithms, doubling_sum, reproducible

CPU = torch.device("cpu")


@pytest.mark.parametrize("size", [0, 1, 2, 7, 64, 100])
def test_doubling_sums_are_torchs_cumulative_sums(size: int) -> None:
    whole = torch.randint(-9, 9, (3, size)).double()
    assert doubling_sum(whole).equal(whole.cumsum(-1))
    x = torch.randn(2, 3, size, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(doubling_sum(x), x.cumsum(-1))
    torch.testing.assert_close(cumulative_sum(x), x.cumsum(-1))
    weights = torch.randn(2, 3, size, dtype=torch.float64)
    ours, theirs = (torch.autograd.grad((y * weights).sum(), x)[0] for y in (doubling_sum(x), x.cumsum(-1)))
    torch.testing.assert_close(ours, theirs)


def test_a_gpu_that_must_be_deterministic_takes_doubling_sums() -> None:
    """torch raises an error for its own there; a subclass stands for a tensor on a GPU."""

    class OnGpu(torch.Tensor):
        is_cuda = True

        def cumsum(self, *_: object) -> torch.Tensor:
            raise AssertionError("torch has no deterministic one")

    x = torch.arange(5.0).as_subclass(OnGpu)
    with deterministic_algorithms(CPU):
        assert cumulative_sum(x).tolist() == [0, 1, 3, 6, 10]


def fails() -> None:
    with deterministic_algorithms(CPU):
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert not torch_deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
        raise KeyError


@pytest.mark.parametrize("before", [False, True])
def test_the_settings_of_before_come_back(before: bool) -> None:
    torch.use_deterministic_algorithms(before, warn_only=before)
    filled = torch_deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    try:
        with pytest.raises(KeyError):
            fails()
        assert torch.are_deterministic_algorithms_enabled() == before
        assert torch.is_deterministic_algorithms_warn_only_enabled() == before
        assert torch_deterministic.fill_uninitialized_memory == filled  # type: ignore[attr-defined]
    finally:
        torch.use_deterministic_algorithms(False)


def test_a_cpu_is_always_deterministic_and_a_gpu_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(determinism.WORKSPACE, ":4096:8")
    for device, asked, expected in (("cpu", False, True), ("cuda", False, False), ("cuda", True, True)):
        with reproducible(torch.device(device), asked):
            assert torch.are_deterministic_algorithms_enabled() == expected


def test_the_workspace_of_cublas(monkeypatch: pytest.MonkeyPatch) -> None:
    name = determinism.WORKSPACE
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setenv(name, ":16:8")
    determinism.fix_cublas_workspace()
    assert determinism.os.environ[name] == ":16:8"
    monkeypatch.setenv(name, ":0:0")
    with pytest.raises(ValueError, match=rf"expected {name} to be :4096:8 or :16:8, got ':0:0'"):
        determinism.fix_cublas_workspace()
    monkeypatch.delenv(name)
    with pytest.raises(ValueError, match="CUDA is in use already"):
        determinism.fix_cublas_workspace()
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    determinism.fix_cublas_workspace()
    assert determinism.os.environ[name] == ":4096:8"
