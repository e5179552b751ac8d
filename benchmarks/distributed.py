"""Training in several processes: does it compute what one process computes, how fast, and does it survive a kill?

    python benchmarks/distributed.py [losses] [speed] [kill] [--data PAIRS.tsv] [--runs 3] [--kinds rnn,transformer]

Everything runs on the CPU, with gloo. Without the name of a part, all three run. PAIRS: default, the sample.

- losses: 1 process × 4 accumulated batches, 2 × 2 and 4 × 1, dropout 0, float32, 50 updates. Printed is the largest
  relative difference of a loss to that of 1 process. The bar is 1e-4.
- speed: target tokens per second of 2 processes with one thread each, and of 1 process with two threads, once with the
  same batches per update (accumulate 2) and once with one batch per update. The bar is 0.9 × the faster one. Runs
  alternate; printed are medians. The machine should be idle.
- kill: `torchrun --max-restarts` with a process that is killed (SIGKILL) twice in mid-training, against a run without a
  kill. The bar: the final models are equal, bit for bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard import samples
from regard.config.recipe_text import read_recipe
from regard.runtime.distributed import current_world, joined_world
from regard.tasks.registry import TRANSLATION
from regard.tasks.spec import Given
from regard.training.checkpoint import Progress
from regard.training.loop import Loop, Machine
from regard.training.plan import Schedule
from regard.training.progress import Reporter, Silent

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("rnn", "transformer")
PARTS = ("losses", "speed", "kill")
LOSS_UPDATES, LOSS_BAR = 50, 1e-4
SPEED_WARMUP, SPEED_UPDATES, SPEED_BAR = 10, 60, 0.9
KILLS = 2
KILL_SETTINGS = {"training.epochs": 3, "training.validations": 12, "training.patience": 0}


# A worker: one of the processes


class Recorder(Reporter):
    """Records the loss, the tokens and the time of every update."""

    def __init__(self) -> None:
        super().__init__(None, Silent())
        self.rows: list[tuple[float, int, float]] = []

    def update(
        self, progress: Progress, plan: Schedule, loss: Tensor, tokens: int, seconds: float, since: float
    ) -> None:
        self.rows.append((float(loss), tokens, time.perf_counter()))


@joined_world()
def work(arguments: argparse.Namespace) -> None:
    """Run so many updates of a training, and let the first process print its rows as JSON."""
    torch.set_num_threads(arguments.threads)
    world, recorder = current_world(), Recorder()
    settings: dict[str, Any] = {"training.accumulate": arguments.accumulate, "training.epochs": 1000}
    if arguments.no_dropout:
        settings |= {"model.dropout": 0.0}
    recipe = read_recipe(arguments.kind, settings)
    task = TRANSLATION.task(TRANSLATION.data(Given([arguments.data]), recipe, Silent()), recipe, 1)
    with tempfile.TemporaryDirectory() as folder:
        loop = Loop(task, Path(folder), Machine(torch.device("cpu"), "fp32", world), recorder, None)
        # Each learning rate is that of a long run with this recipe, whose warm-up these updates are part of.
        loop.progress.plan = Schedule(arguments.updates, (), task.recipe.training.warmup)
        loop.run()
    if world.is_first:
        print(json.dumps(recorder.rows))


def rows_of(kind: str, processes: int, accumulate: int, threads: int, updates: int, data: Path, *more: str) -> Any:
    """Run updates in processes of their own, and return (loss, tokens, seconds) of each update."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = {"kind": kind, "accumulate": accumulate, "threads": threads, "updates": updates, "data": data}
    given = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    common = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}
    places = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(processes)]
    if processes > 1:
        common |= {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    running = [
        subprocess.Popen(
            [sys.executable, __file__, "--work", *given, *more],
            env=common | (place if processes > 1 else {}),
            stdout=subprocess.PIPE,
            text=True,
        )
        for place in places
    ]
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise RuntimeError(f"{kind}, {processes} processes: exit codes {[each.returncode for each in running]}")
    return json.loads(outputs[0])


# The parts


def losses(data: Path, kinds: Sequence[str]) -> bool:
    """Compare the losses of 1, 2 and 4 processes with the same batches per update."""
    passed = True
    for kind in kinds:
        expected = [row[0] for row in rows_of(kind, 1, 4, 1, LOSS_UPDATES, data, "--no-dropout")]
        for processes in (2, 4):
            ours = [row[0] for row in rows_of(kind, processes, 4 // processes, 1, LOSS_UPDATES, data, "--no-dropout")]
            worst = max(abs(one - other) / abs(other) for one, other in zip(ours, expected, strict=True))
            passed &= worst <= LOSS_BAR
            facts = f"loss {expected[0]:.3f} → {expected[-1]:.3f} in {LOSS_UPDATES} updates"
            print(
                f"| losses | {kind}, {processes} × {4 // processes} against 1 × 4, {facts} | {worst:.1e} |", flush=True
            )
    return passed


def speed_of(rows: Any) -> float:
    """Return target tokens per second after the warm-up."""
    tokens = sum(row[1] for row in rows[SPEED_WARMUP:])
    return float(tokens / (rows[-1][2] - rows[SPEED_WARMUP - 1][2]))


def speed(data: Path, kinds: Sequence[str], runs: int) -> bool:
    """Compare the speed of two processes with that of one."""
    passed = True
    cases = {"2 processes × 1 thread": (2, 1, 1), "1 × 2, accumulate 2": (1, 2, 2), "1 × 2, accumulate 1": (1, 1, 2)}
    for kind in kinds:
        speeds: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(runs):
            for name, (processes, accumulate, threads) in cases.items():
                updates = (SPEED_WARMUP + SPEED_UPDATES) * (2 if processes * accumulate == 1 else 1)
                speeds[name].append(speed_of(rows_of(kind, processes, accumulate, threads, updates, data)))
        two, *others = (statistics.median(each) for each in speeds.values())
        passed &= two >= SPEED_BAR * max(others)
        for name, each in speeds.items():
            spread = f"{min(each):,.0f} to {max(each):,.0f}"
            ratio = two / statistics.median(each)
            print(
                f"| speed | {kind}, {name} | {statistics.median(each):,.0f} tokens/s ({spread}), ratio {ratio:.2f} |",
                flush=True,
            )
    return passed


def kill(data: Path, kinds: Sequence[str]) -> bool:
    """Kill a process in mid-training, twice, and compare the final model with that of a run without a kill."""
    passed = True
    for kind in kinds:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            sums = [_trained(kind, data, folder / "whole", 0), _trained(kind, data, folder / "killed", KILLS)]
        passed &= sums[0] == sums[1]
        print(f"| kill | {kind}, {KILLS} kills | {'equal' if sums[0] == sums[1] else 'NOT EQUAL'}: {sums[0][:16]} |")
    return passed


def _trained(kind: str, data: Path, out: Path, kills: int) -> str:
    """Train by torchrun, kill a process after every fourth validation so often, and return the model's SHA-256."""
    settings = [part for key, value in KILL_SETTINGS.items() for part in ("--set", f"{key}={value}")]
    torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", str(kills)]
    train = ["regard", "train", str(data), "--out", str(out), "--recipe", kind, *settings, "--device", "cpu"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", *torchrun, "-m", *train, "--quiet"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    log = out / "log.jsonl"
    for number in range(kills):
        while not log.exists() or log.read_bytes().count(b'"validation"') < 4 * (number + 1):
            if process.poll() is not None:
                raise RuntimeError(f"it ended before kill {number + 1}: {process.communicate()[1]}")
            time.sleep(0.02)
        os.kill(_worker(process.pid, number % 2), signal.SIGKILL)
        time.sleep(2.0)  # until torchrun has noticed
    errors = process.communicate()[1]
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode}: {errors}")
    return hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()


def _worker(torchrun: int, rank: int) -> int:
    """Return the process of this rank."""
    children = Path(f"/proc/{torchrun}/task/{torchrun}/children").read_text().split()
    own = f"RANK={rank}".encode()
    return next(int(child) for child in children if own in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])  # type: ignore[arg-type]
    parser.add_argument("--data", type=Path, default=samples.folder() / samples.TRAIN)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(KINDS))
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    for name, kind in (("kind", str), ("accumulate", int), ("threads", int), ("updates", int)):
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)
    parser.add_argument("--no-dropout", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments)
        return 0
    print("| part | case | result |\n|---|---|---|", flush=True)
    runs = {
        "losses": lambda: losses(arguments.data, arguments.kinds),
        "speed": lambda: speed(arguments.data, arguments.kinds, arguments.runs),
        "kill": lambda: kill(arguments.data, arguments.kinds),
    }
    passed = [runs[part]() for part in arguments.parts or PARTS]
    print("all bars are met" if all(passed) else "NOT all bars are met")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
