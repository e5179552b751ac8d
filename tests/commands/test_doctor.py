"""`regard doctor`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.doctor import self_test
from tests.commands.run import Inside, refused


def test_the_report_is_plain_text(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    done = inside("doctor", "--threads", "1")
    assert done.returncode == 0, done.stdout
    for part in (
        "versions",
        "regard 0.",
        "torch 2.",
        "cpu ",
        "threads 1",
        "OMP_NUM_THREADS=1",
        "precision",
        "kernels on cpu",
        "self-test",
    ):
        assert part in done.stdout
    assert "  no     fused" in done.stdout and "not on a GPU" in done.stdout
    assert "ok     attention on cpu" in done.stdout and "ok     translator on cpu" in done.stdout
    assert "\x1b" not in done.stdout and "ada" not in done.stdout and str(Path.cwd()) not in done.stdout


def test_json_without_the_test(inside: Inside) -> None:
    done = inside("doctor", "--json", "--no-test")
    report = json.loads(done.stdout)
    assert done.returncode == 0 and done.stderr == "" and "self_test" not in report
    assert {kernel["name"] for kernel in report["kernels"]["cpu"]} > {"dense", "tiles", "reference", "fused additive"}


def test_a_failed_check_is_exit_code_1(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test, "attention_check", lambda device: (False, "largest error 1.0e+00"))
    monkeypatch.setattr(self_test, "translator_check", lambda device: (True, "fine"))
    done = inside("doctor")
    assert done.returncode == 1 and "FAILED attention on cpu" in done.stdout


def test_a_mistake_is_one_line(inside: Inside) -> None:
    assert "--threads" in refused(inside("doctor", "--threads", "0"))
