"""Attention on the CPU: Regard beside what a user would write with torch today, forward + backward, in one run.

    python benchmarks/cpu_attention.py [--only WORK ...] [--runs N] [--json FILE]

fp32, 2 threads. Times are medians of alternating runs; masks are built outside the timing. Peak memory is resident
memory above the level after inputs and a tiny warm-up, each side in a process of its own. Every case is checked first:
both sides must agree on the context and the gradients.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

import regard
from regard import Additive, Full, Pattern, ScaledDot, Strided, Window, attention, bigbird, longformer

Step = Callable[[], Tensor]


@dataclass(frozen=True)
class Work:
    """One line of the table."""

    inputs: Callable[[], list[Tensor]]
    """what takes a gradient"""
    ours: Callable[[list[Tensor]], Step]
    theirs: Callable[[list[Tensor]], Step]
    peer: str
    bar: str
    faster: float
    """ours must be this many times faster"""
    memory: tuple[str, float] | None = None
    """("weights", f): peak ≤ f × the dense weights; ("peer", f): peak ≤ f × the peer's"""


def states(*shape: int, count: int = 3) -> Callable[[], list[Tensor]]:
    def make() -> list[Tensor]:
        torch.manual_seed(0)
        return [torch.randn(*shape, requires_grad=True) for _ in range(count)]

    return make


def ours_dot(pattern: Pattern) -> Callable[[list[Tensor]], Step]:
    def prepare(inputs: list[Tensor]) -> Step:
        score = ScaledDot()
        return lambda: attention(*inputs, score=score, pattern=pattern).context

    return prepare


def masked_sdpa(pattern: Pattern) -> Callable[[list[Tensor]], Step]:
    def prepare(inputs: list[Tensor]) -> Step:
        length = inputs[0].shape[-2]
        mask = None if pattern == Full() else pattern.mask(length, length)
        query, key, value = inputs
        return lambda: scaled_dot_product_attention(query, key, value, attn_mask=mask)

    return prepare


def additive_inputs() -> list[Tensor]:
    torch.manual_seed(0)
    query, key, value = (torch.randn(16, 256, 256, requires_grad=True) for _ in range(3))
    vector = (torch.randn(256) / math.sqrt(256)).requires_grad_()
    return [query, key, value, vector]


def ours_additive(inputs: list[Tensor]) -> Step:
    score = Additive(None, None, 256)
    score.vector = torch.nn.Parameter(inputs[3].detach())
    inputs[3] = score.vector
    return lambda: attention(*inputs[:3], score=score).context


def naive_additive(inputs: list[Tensor]) -> Step:
    query, key, value, vector = inputs

    def step() -> Tensor:
        pairs = torch.tanh(query[:, :, None] + key[:, None])
        energies = pairs @ vector
        weights = energies.softmax(-1)
        return weights @ value

    return step


LARGEST_DIFFERENCE = 1e-4
LONG = states(1, 8, 8192, 64)
FIRST = range(64)
SPARSE = {
    "window": (Window(256), 8.0),
    "strided": (Strided(64), 20.0),
    "longformer": (longformer(512, FIRST, stride=64), 4.0),
    "bigbird": (bigbird(512, FIRST, random=3, block=128), 4.0),
}
WORKS: dict[str, Work] = {
    name: Work(
        LONG,
        ours_dot(pattern),
        masked_sdpa(pattern),
        "SDPA with the pattern as a mask",
        f"≥ {faster:g}× faster" + ("; memory ≤ 1/8 of dense weights" if name == "window" else ""),
        faster,
        ("weights", 1 / 8) if name == "window" else None,
    )
    for name, (pattern, faster) in SPARSE.items()
} | {
    "additive": Work(
        additive_inputs,
        ours_additive,
        naive_additive,
        "the naive four lines",
        "≥ 1× as fast; memory ≤ 1/10",
        1.0,
        ("peer", 1 / 10),
    ),
    "full": Work(states(8, 8, 512, 64), ours_dot(Full()), masked_sdpa(Full()), "SDPA", "≤ 1.1× its time", 1 / 1.1),
}
GROWTH = {"window": Window(256), "longformer": longformer(512, FIRST)}


def run(step: Step, inputs: list[Tensor], gradient: Tensor | None = None) -> float:
    """Seconds for forward + backward."""
    for x in inputs:
        x.grad = None
    start = time.perf_counter()
    context = step()
    context.backward(torch.ones_like(context) if gradient is None else gradient)
    return time.perf_counter() - start


def check(work: Work) -> float:
    """The largest difference of context and gradients between the two sides, relative to the largest number."""
    result = []
    for prepare in (work.ours, work.theirs):
        inputs = work.inputs()
        step = prepare(inputs)
        torch.manual_seed(1)
        with torch.no_grad():
            context = step()
        run(step, inputs, torch.randn_like(context))
        result.append([context, *(x.grad for x in inputs if x.grad is not None)])
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(*result, strict=True))


def alternate(sides: list[tuple[Step, list[Tensor]]], runs: int) -> list[float]:
    """The median seconds of each side."""
    for side in sides:
        run(*side)
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(runs):
        for side, seconds in zip(sides, times, strict=True):
            seconds.append(run(*side))
    return [statistics.median(seconds) for seconds in times]


class PeakMemory:
    """Resident memory above the level at the start, watched by a thread every half millisecond."""

    def __enter__(self) -> PeakMemory:
        self.start = self.peak = self._resident()
        self.done = False
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done = True
        self.thread.join()
        self.peak = max(self.peak, self._resident())

    @property
    def extra(self) -> int:
        return self.peak - self.start

    def _watch(self) -> None:
        while not self.done:
            self.peak = max(self.peak, self._resident())
            time.sleep(0.0005)

    @staticmethod
    def _resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def measure_memory(name: str, side: str) -> int:
    """Peak extra bytes of one forward + backward, in this process."""
    work = WORKS[name]
    prepare = work.ours if side == "ours" else work.theirs
    tiny = [x[..., :8, :].detach().requires_grad_() if x.dim() > 1 else x for x in work.inputs()]
    if name == "additive":
        run(prepare(tiny), tiny)
    else:
        run(ours_dot(Window(2))(tiny) if side == "ours" else masked_sdpa(Window(2))(tiny), tiny)
    inputs = work.inputs()
    step = prepare(inputs)
    with PeakMemory() as memory:
        run(step, inputs)
    # what stays: the gradients of the inputs, which every side must give
    return memory.extra


def memory_of(name: str, side: str) -> int:
    command = [sys.executable, __file__, "--memory", name, side]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(name: str, runs: int) -> dict[str, object]:
    work = WORKS[name]
    error = check(work)
    if not error < LARGEST_DIFFERENCE:
        raise SystemExit(f"{name}: the two sides differ by {error:.1e} of the largest number; nothing was timed")
    sides = []
    for prepare in (work.ours, work.theirs):
        inputs = work.inputs()
        sides.append((prepare(inputs), inputs))
    ours, theirs = alternate(sides, runs)
    row: dict[str, object] = {
        "work": name,
        "peer": work.peer,
        "bar": work.bar,
        "ours_ms": ours * 1e3,
        "peer_ms": theirs * 1e3,
        "times_faster": theirs / ours,
        "largest_difference": error,
        "met": theirs / ours >= work.faster,
    }
    if work.memory is not None:
        against, most = work.memory
        mine, other = memory_of(name, "ours"), memory_of(name, "peer")
        dense = 4 * 8 * 8192 * 8192
        fraction = mine / (dense if against == "weights" else other)
        row |= {
            "ours_mib": mine / 2**20,
            "peer_mib": other / 2**20,
            "memory_share": fraction,
            "memory_against": against,
        }
        row["met"] = bool(row["met"]) and fraction <= most
    return row


def measure_growth(name: str, runs: int) -> dict[str, object]:
    """How time grows from 4096 to 16384 positions."""
    pattern = GROWTH[name]
    sides = []
    for length in (4096, 16384):
        inputs = states(1, 8, length, 64)()
        sides.append((ours_dot(pattern)(inputs), inputs))
    short, long = alternate(sides, runs)
    return {
        "work": f"growth {name}",
        "bar": "N × 4: time ≤ × 4.8",
        "short_ms": short * 1e3,
        "long_ms": long * 1e3,
        "growth": long / short,
        "met": long / short <= 4.8,
    }


def line(row: dict[str, object]) -> str:
    mark = "met" if row["met"] else "MISSED"
    if "growth" in row:
        times = f"{row['short_ms']:.0f} ms → {row['long_ms']:.0f} ms: × {row['growth']:.2f}"
        return f"{row['work']:18} {times:50} {row['bar']}: {mark}"
    text = f"{row['ours_ms']:.0f} ms, {row['peer']} {row['peer_ms']:.0f} ms: {row['times_faster']:.2f}×"
    if "ours_mib" in row:
        fraction = f"{row['memory_share']:.3f} of {row['memory_against']}"
        text += f"; {row['ours_mib']:.0f} MiB, {row['peer_mib']:.0f} MiB ({fraction})"
    return f"{row['work']:18} {text:50} {row['bar']}: {mark}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*WORKS, *(f"growth-{name}" for name in GROWTH)]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="WORK")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--memory", nargs=2, metavar=("WORK", "SIDE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory:
        print(measure_memory(*options.memory))
        return
    print(f"regard {regard.__version__}, torch {torch.__version__}, {options.threads} threads, {platform.processor()}")
    rows = []
    for name in options.only:
        growth = name.removeprefix("growth-")
        rows.append(measure_growth(growth, options.runs) if name != growth else measure(name, options.runs))
        print(line(rows[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
