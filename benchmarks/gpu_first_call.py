"""How long does the first call of a combination take on a GPU, forward and backward?

    python benchmarks/gpu_first_call.py [--count 100] [--processes 1] [--seed 1]

Combinations of score, pattern, normalizer, dtype, features, lengths and precision are drawn. Each runs in a fresh
process with an empty Triton cache, forked from one that has imported everything and never touched the GPU. The clock
starts when the tensors lie on the GPU, and stops when the gradients are there. The bars: all within 6 s, 80 % within
2 s.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from typing import Any

os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # whether there is a GPU is asked without initializing CUDA

import torch
import triton.compiler

from regard import Additive, General, Hard, attention, plan
from regard.core.kernels.gpu import (
    hard,  # noqa: F401
)

SCORES = ["dot", "scaled_dot", "general", "cosine", "additive"]
PATTERNS = [
    "full",
    "causal",
    "window(64)",
    "strided(8)",
    "dilated(4, 8)",
    "window(16) | global(0)",
    "longformer(64, 0:4, stride=32)",
    "bigbird(64, 0:2, 2, 32)",
]
NORMALIZERS = ["softmax", "sparsemax", "entmax15", "hard", "gumbel"]
DTYPES = ["float32", "bfloat16", "float16"]
LONGEST, MOST_OFTEN = 6.0, 2.0


def drawn(rng: random.Random) -> dict[str, Any]:
    return {
        "score": rng.choice(SCORES),
        "pattern": rng.choice(PATTERNS),
        "normalizer": rng.choice(NORMALIZERS),
        "dtype": rng.choice(DTYPES),
        "features": rng.choice([16, 32, 64, 80, 128]),
        "positions": rng.choice([100, 300, 1000]),
        "padded": rng.random() < 0.5,
        "tf32": rng.random() < 0.5,
    }


def first_call(case: dict[str, Any]) -> dict[str, Any]:
    """Return the case with its seconds, kernel and device. It runs in a process of its own."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        return _measured(case)


def _measured(case: dict[str, Any]) -> dict[str, Any]:
    torch.backends.cuda.matmul.allow_tf32 = case["tf32"]
    dtype, features, positions = getattr(torch, case["dtype"]), case["features"], case["positions"]
    score: Any = case["score"]
    if score == "additive":
        score = Additive(features, features, 64).to("cuda", dtype)
    elif score == "general":
        score = General(features, features).to("cuda", dtype)
    normalizer = {"gumbel": Hard("gumbel", sample=True)}.get(case["normalizer"], case["normalizer"])
    states = [torch.randn(2, 4, positions, features, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3)]
    options: dict[str, Any] = {"score": score, "pattern": case["pattern"], "normalizer": normalizer}
    options["lengths"] = [positions, positions // 2] if case["padded"] else None
    torch.mm(torch.ones(8, 8, device="cuda"), torch.ones(8, 8, device="cuda"))
    torch.cuda.synchronize()
    began = time.monotonic()
    attention(*states, **options).context.float().sum().backward()
    torch.cuda.synchronize()
    seconds = time.monotonic() - began
    kernel = plan(*states, **options).kernel.name
    return {**case, "seconds": round(seconds, 2), "kernel": kernel, "device": torch.cuda.get_device_name()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--processes", type=int, default=1, help="at a time")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("gpu_first_call: torch finds no GPU here")
    rng = random.Random(given.seed)
    by_kernel: dict[str, list[float]] = defaultdict(list)
    cases = [drawn(rng) for _ in range(given.count)]
    with multiprocessing.get_context("fork").Pool(given.processes, maxtasksperchild=1) as pool:
        for result in pool.imap(first_call, cases, chunksize=1):
            device = result.pop("device")
            by_kernel[result["kernel"]].append(result["seconds"])
            print(json.dumps(result), flush=True)
    every = sorted(seconds for some in by_kernel.values() for seconds in some)
    versions = f"torch {torch.__version__}, Triton {triton.__version__}"
    print(f"\n{device}, {versions}, {len(every)} combinations, processes at a time: {given.processes}")
    for kernel, some in sorted(by_kernel.items()):
        print(f"{kernel:16} {len(some):3}   median {sorted(some)[len(some) // 2]:.2f} s   longest {max(some):.2f} s")
    within = sum(seconds <= MOST_OFTEN for seconds in every) / len(every)
    print(f"longest {every[-1]:.2f} s (at most {LONGEST}), {within:.0%} within {MOST_OFTEN} s (at least 80 %)")


if __name__ == "__main__":
    main()
