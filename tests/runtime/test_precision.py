"""In which numbers products are computed."""

from __future__ import annotations

import pytest
import torch

from regard.runtime import precision
from regard.runtime.precision import autocast, gpu_names

CPU = torch.device("cpu")


def product_dtype() -> torch.dtype:
    return (torch.ones(2, 2) @ torch.ones(2, 2)).dtype


@pytest.mark.parametrize(("asked", "result"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_products_are_in_what_was_asked_for(asked: str, result: torch.dtype) -> None:
    with autocast(asked, CPU):  # type: ignore[arg-type]
        assert product_dtype() == result
    assert product_dtype() == torch.float32


@pytest.mark.parametrize("there", [True, False])
def test_auto_asks_the_processor(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "cpu_has_bfloat16", lambda: there)
    with autocast("auto", CPU):
        assert product_dtype() == (torch.bfloat16 if there else torch.float32)


def test_auto_on_a_gpu_stays_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "cpu_has_bfloat16", lambda: True)
    with autocast("auto", torch.device("cuda")):
        assert not torch.is_autocast_enabled("cuda")


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="precision: expected auto, fp32 or bf16, got 'fp8'"):
        autocast("fp8", CPU)  # type: ignore[arg-type]


def test_the_gpus_over_which_runs_are_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    assert gpu_names(None) == gpu_names("cuda") == ["cuda:0", "cuda:1", "cuda:2"]
    assert gpu_names("cuda:1") == ["cuda:1"] and gpu_names("cpu") == []
