"""The self-test passes here, and fails where numbers are wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from regard.core.kernels.cpu.tile_kernels import Tiles
from regard.core.request import Request
from regard.core.result import Result
from regard.doctor import self_test
from regard.doctor.report import as_text, has_passed

CPU = torch.device("cpu")


def test_all_combinations_of_attention_are_right() -> None:
    passed, detail = self_test.attention_check(CPU, seconds=60.0)
    assert passed and detail.startswith("240 of 240 combinations by 6 kernels")


def test_there_is_no_time_for_all() -> None:
    assert self_test.attention_check(CPU, seconds=0.0)[1].startswith("1 of 240 combinations")


@pytest.mark.parametrize("factor", [1.01, float("nan")])
def test_a_wrong_kernel_fails(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Tiles.run

    def wrong(kernel: Tiles, request: Request) -> Result:
        result = right(kernel, request)
        return replace(result, context=result.context * factor)

    monkeypatch.setattr(Tiles, "run", wrong)
    passed, detail = self_test.attention_check(CPU, seconds=60.0)
    assert not passed and "by tiles" in detail


def test_a_translator_is_trained_saved_and_loaded() -> None:
    passed, detail = self_test.translator_check(CPU)
    assert passed and "trained, saved, loaded" in detail and "bit for bit" in detail


def test_errors_fail_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(device: torch.device) -> tuple[bool, str]:
        raise RuntimeError("CUDA error")

    monkeypatch.setattr(self_test, "attention_check", broken)
    monkeypatch.setattr(self_test, "translator_check", lambda device: (True, "fine"))
    results = [result._asdict() for result in self_test.self_test([CPU])]
    assert [result["passed"] for result in results] == [False, True]
    report = {"self_test": results}
    assert not has_passed(report) and "FAILED attention on cpu" in as_text(report)
