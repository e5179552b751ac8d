"""Long texts on the CPU: a long pattern beside full attention by SDPA, and beside attention that forms its weights.

    python benchmarks/long_texts.py [--pattern 'window(64) | global(0)'] [--runs 7] [--json FILE]

Two texts of 3,300 subwords, 4 heads of 64 features, fp32, 2 threads.

- operation: attention alone, forward + backward.
- step: a whole step of training a classifier: embedding, 3 Transformer blocks of width 256 (1,024 within, dropout 0.1,
  none on the weights), a learned query that pools, loss, backward, AdamW. All sides are the same model with the same
  parameters; only how a block attends differs.

Times are medians of alternating runs. Peak memory is resident memory above the level after inputs and a small warm-up,
the median of 3 processes; of a step, the optimizer's state is there already. The processes give memory back as soon as
it is free (MALLOC_MMAP_THRESHOLD_), or what is fragmented would count; they still differ by up to 1 %. Before any is
timed, the pattern is checked against SDPA with the pattern as a mask, and the three models, all with full attention,
against each other.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from cpu_attention import LARGEST_DIFFERENCE, PeakMemory, Step, Work, check, masked_sdpa, ours_dot, run, states
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

import regard
from regard import MultiHead, Pool
from regard.core.pattern_text import parse
from regard.core.result import Result
from regard.models.transformer.layers import AttentionOptions, EncoderBlock, Shape
from regard.models.transformer.positions import Positions

Look = Callable[[Tensor, Tensor, Tensor], Tensor]

TEXTS, LENGTH, HEADS, WIDTH, INNER, BLOCKS = 2, 3300, 4, 256, 1024, 3
SUBWORDS, CLASSES = 8000, 2
PATTERN = "window(64) | global(0)"
INPUTS = states(TEXTS, HEADS, LENGTH, WIDTH // HEADS)
PROCESSES = 3
BARS = {"operation": 3.0, "step": 1.6}
"""how many times faster than SDPA"""
MEMORY_BARS = {"sdpa": 1.0, "weights": 0.25}
"""the largest share of the peak memory of the others"""


def forms_weights(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    energies = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return energies.softmax(-1) @ value


OTHERS: dict[str, Look] = {"sdpa": scaled_dot_product_attention, "weights": forms_weights}
SIDES = ("regard", *OTHERS)


class Plain(nn.Module):
    """The projections of a `MultiHead`, with another attention between them."""

    def __init__(self, owner: MultiHead, look: Look) -> None:
        super().__init__()
        self.owner, self.look = owner, look

    def forward(self, states: Tensor, **_: object) -> Result:
        projections = (self.owner.query, self.owner.key, self.owner.value)
        heads = [project(states).unflatten(-1, (HEADS, -1)).transpose(1, 2) for project in projections]
        context = self.look(heads[0], heads[1], heads[2]).transpose(1, 2).flatten(-2)
        return Result(self.owner.output(context))


class Classifier(nn.Module):
    """subwords [B, N] → [B, classes]"""

    def __init__(self, side: str, pattern: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SUBWORDS, WIDTH)
        self.positions = Positions("sinusoidal", WIDTH, LENGTH)
        shape = Shape(WIDTH, HEADS, INNER, dropout=0.1)
        self.blocks = nn.ModuleList(EncoderBlock(shape, AttentionOptions(pattern=pattern)) for _ in range(BLOCKS))
        if side in OTHERS:
            for block in self.blocks:
                block.attend = Plain(block.attend, OTHERS[side])  # type: ignore[arg-type, assignment]
        self.norm = nn.LayerNorm(WIDTH)
        self.pool = Pool(WIDTH)
        self.output = nn.Linear(WIDTH, CLASSES)

    def forward(self, texts: Tensor) -> Tensor:
        states = self.positions(self.embedding(texts))
        for block in self.blocks:
            states = block(states)
        logits: Tensor = self.output(self.pool(self.norm(states)).context)
        return logits


class Training:
    """One step after another on texts of any length."""

    def __init__(self, side: str, pattern: str) -> None:
        torch.manual_seed(0)
        self.model = Classifier(side, pattern).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-4, fused=True)

    def loss(self, length: int) -> Tensor:
        texts = torch.randint(SUBWORDS, (TEXTS, length), generator=torch.Generator().manual_seed(1))
        return cross_entropy(self.model(texts), torch.arange(TEXTS) % CLASSES)

    def step(self, length: int) -> float:
        """Seconds."""
        began = time.perf_counter()
        self.optimizer.zero_grad()
        self.loss(length).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return time.perf_counter() - began


def operation(side: str, pattern: str) -> Callable[[list[Tensor]], Step]:
    if side == "regard":
        return ours_dot(parse(pattern))
    return lambda inputs: lambda: OTHERS[side](inputs[0], inputs[1], inputs[2])


def check_sides(pattern: str) -> None:
    """SystemExit, if the sides do not compute the same."""
    parsed = parse(pattern)
    error = check(Work(INPUTS, ours_dot(parsed), masked_sdpa(parsed), "SDPA with a mask", "", 1.0))
    if not error < LARGEST_DIFFERENCE:
        raise SystemExit(f"{pattern} differs from SDPA with a mask by {error:.1e} of the largest number")
    losses = []
    for side in SIDES:
        training = Training(side, "full")
        training.model.eval()
        losses.append(training.loss(200).item())
    if not max(losses) - min(losses) < LARGEST_DIFFERENCE:
        raise SystemExit(f"with full attention the models differ: losses {losses}")


def medians(sides: dict[str, Callable[[], float]], runs: int) -> dict[str, float]:
    """The median seconds of each, run in turn after a run that does not count."""
    measured: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(runs + 1):
        for name, seconds in sides.items():
            took = seconds()
            if number:
                measured[name].append(took)
    return {name: statistics.median(times) for name, times in measured.items()}


def times(part: str, pattern: str, runs: int) -> dict[str, float]:
    """Seconds of `regard` and `sdpa`."""
    sides: dict[str, Callable[[], float]] = {}
    for side in ("regard", "sdpa"):
        if part == "step":
            sides[side] = partial(Training(side, pattern).step, LENGTH)
        else:
            inputs = INPUTS()
            sides[side] = partial(run, operation(side, pattern)(inputs), inputs)
    return medians(sides, runs)


def measure_memory(part: str, side: str, pattern: str) -> int:
    """Peak extra bytes of one run, in this process."""
    small = 256
    if part == "step":
        training = Training(side, pattern)
        training.step(small)
        with PeakMemory() as memory:
            training.step(LENGTH)
        return memory.extra
    inputs = INPUTS()
    few = [x[..., :small, :].detach().requires_grad_() for x in inputs]
    run(operation(side, pattern)(few), few)
    with PeakMemory() as memory:
        run(operation(side, pattern)(inputs), inputs)
    return memory.extra


def memory_of(part: str, side: str, options: argparse.Namespace) -> float:
    """MiB, the median of processes of their own."""
    lean = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(2**20)}
    command = [sys.executable, __file__, "--memory", part, side, "--pattern", options.pattern]
    command += ["--threads", str(options.threads)]
    measured = []
    for _ in range(PROCESSES):
        done = subprocess.run(command, env=lean, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr[-4000:])
        measured.append(int(done.stdout) / 2**20)
    return statistics.median(measured)


def measure(part: str, options: argparse.Namespace) -> dict[str, Any]:
    seconds = times(part, options.pattern, options.runs)
    faster = seconds["sdpa"] / seconds["regard"]
    mebibytes = {side: memory_of(part, side, options) for side in SIDES}
    shares = {other: round(mebibytes["regard"] / mebibytes[other], 2) for other in OTHERS}
    print(
        f"{part}: {seconds['regard'] * 1e3:.0f} ms, SDPA {seconds['sdpa'] * 1e3:.0f} ms: {faster:.2f}× as fast "
        f"(bar {BARS[part]:g}×: {_met(faster >= BARS[part])})\n"
        f"  peak memory {mebibytes['regard']:.0f} MiB; SDPA {mebibytes['sdpa']:.0f} MiB: {shares['sdpa']:.2f} of it "
        f"(bar {MEMORY_BARS['sdpa']:g}: {_met(shares['sdpa'] <= MEMORY_BARS['sdpa'])}); "
        f"with weights formed {mebibytes['weights']:.0f} MiB: {shares['weights']:.2f} of it "
        f"(bar {MEMORY_BARS['weights']:g}: {_met(shares['weights'] <= MEMORY_BARS['weights'])})",
        flush=True,
    )
    return {"part": part, "seconds": seconds, "times_faster": faster, "mebibytes": mebibytes, "memory_shares": shares}


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=BARS, default=list(BARS), metavar="PART")
    parser.add_argument("--pattern", default=PATTERN)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--memory", nargs=2, metavar=("PART", "SIDE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory:
        part, side = options.memory
        print(measure_memory(part, side, options.pattern))
        return
    density = parse(options.pattern).mask(LENGTH, LENGTH).double().mean().item()
    print(f"regard {regard.__version__}, torch {torch.__version__}, {options.threads} threads, {platform.processor()}")
    print(f"{options.pattern}: {density:.1%} of the pairs of {LENGTH:,} positions")
    check_sides(options.pattern)
    results = [measure(part, options) for part in options.only]
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
