"""Memory that the C library, torch and oneDNN hold without use."""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from regard.runtime import heap
from regard.runtime.heap import HeapTrimmer, trim_heap


def anonymous_megabytes() -> float:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    found = re.search(r"RssAnon:\s+(\d+)", status)
    assert found is not None
    return int(found[1]) / 1024


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_unused_memory_goes_back() -> None:
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("not glibc")
    tensors = [torch.ones(20_000) for _ in range(2000)]  # 160 MB in blocks of 80 kB
    held = tensors[::10]  # what stays keeps the heap from shrinking
    before = anonymous_megabytes()
    del tensors
    trim_heap()
    assert anonymous_megabytes() < before - 100
    assert all(bool(tensor.eq(1).all()) for tensor in held)


def test_it_does_nothing_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    trim_heap()


def test_it_is_trimmed_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    times, trimmed = iter([0.0, 5.0, 10.0, 10.1, 20.0]), list[bool]()
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    monkeypatch.setattr(heap, "trim_heap", lambda: trimmed.append(True))
    trimmer = HeapTrimmer()
    for expected in (0, 1, 1):
        trimmer.trim_if_due()
        assert len(trimmed) == expected


PRODUCTS_OF_MANY_SHAPES = """
import re, sys, torch
from pathlib import Path
from regard.runtime.heap import limit_shape_caches

if sys.argv[1] == "limited":
    limit_shape_caches()
weight = torch.randn(64, 64, dtype=torch.bfloat16)
for rows in range(1, 601):
    torch.nn.functional.linear(torch.ones(rows, 64, dtype=torch.bfloat16), weight)
print(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_few_shapes_are_remembered() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in heap.SHAPE_CACHES}

    def megabytes(how: str) -> float:
        command = [sys.executable, "-c", PRODUCTS_OF_MANY_SHAPES, how]
        return int(subprocess.check_output(command, env=environment, text=True)) / 1024

    unlimited = megabytes("unlimited")
    limited = megabytes("limited")
    if unlimited < 300:
        pytest.skip(f"torch's products hold little memory on this processor: {unlimited:.0f} MB in all")
    assert limited < unlimited - 150


def test_a_limit_of_the_user_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"LRU_CACHE_CAPACITY": "1000"}
    monkeypatch.setattr(os, "environ", environment)
    heap.limit_shape_caches()
    assert environment == heap.SHAPE_CACHES | {"LRU_CACHE_CAPACITY": "1000"}
