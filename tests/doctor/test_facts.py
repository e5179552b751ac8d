"""The facts of a bug report: right, without names of users, and there even if a part of them fails."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version

import pytest
import torch

import regard
from regard.doctor import facts


def test_every_section_has_facts() -> None:
    report = facts.gather(facts.SECTIONS)
    assert not [name for name, section in report.items() if isinstance(section, dict) and "error" in section]
    assert report["versions"]["regard"] == regard.__version__ and report["versions"]["torch"] == version("torch")
    assert report["cpu"]["threads"] == torch.get_num_threads()
    assert 1 <= report["cpu"]["available_cores"] <= report["cpu"]["cores"]
    assert report["cpu"]["instructions"] == torch.backends.cpu.get_cpu_capability()
    assert len(report["gpus"]) == (torch.cuda.device_count() if torch.cuda.is_available() else 0)
    assert report["precision"]["cpu"].startswith(("bf16", "fp32"))
    assert all(cache["entries"] <= cache["maxsize"] for cache in report["caches"])


def test_a_section_that_fails_is_a_line() -> None:
    def broken() -> None:
        raise RuntimeError("CUDA driver\n  error at /home/ada/lib.so")

    report = facts.gather({"cuda": broken, "versions": facts.versions})
    assert report["cuda"] == {"error": "RuntimeError: CUDA driver error at ~/lib.so"}
    assert report["versions"]["regard"] == regard.__version__


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/ada/.triton/cache", "~/.triton/cache"),
        ("file /Users/ada/x and /home/bob/y", "file ~/x and ~/y"),
        (r"C:\Users\ada\x", r"~\x"),
        ("/data/ada/x", "/data/ada/x"),
    ],
)
def test_home_folders_are_not_told(text: str, expected: str) -> None:
    assert facts.without_home(text) == expected


def test_an_unusual_home_is_not_told_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/disks/people/ada")
    assert facts.without_home("/disks/people/ada/cache") == "~/cache"


def test_only_known_variables_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("TRITON_CACHE_DIR", "/home/ada/cache")
    shown = facts.environment()
    assert shown["OMP_NUM_THREADS"] == "3" and shown["TRITON_CACHE_DIR"] == "~/cache"
    assert "secret" not in shown.values() and set(shown) <= set(facts.VARIABLES) & set(os.environ)


def test_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(facts, "version", missing)
    assert facts.extras()["matplotlib"] == "not installed: no pictures as .png and .pdf"
    assert facts.versions()["torch"] == "missing"


@pytest.mark.parametrize(
    ("cuda", "visible", "reason"), [(None, "", "built without CUDA"), ("12.8", "-1", "CUDA_VISIBLE_DEVICES hides them")]
)
def test_why_there_is_no_gpu(cuda: str | None, visible: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert reason in facts.why_no_gpu()
