"""Sharded translation beside the plain command: speed with one and two workers, the output after workers are killed.

    python benchmarks/shards.py [--model regard-demo] [--lines 50000] [--runs 3] [--kills 5] [--only plain one two …]

Without --model, trains the model of `regard demo` first (3 minutes). The lines are distinct sentences of the sample's
grammar. Every worker has one thread and computes in float32. One and two workers alternate `--runs` times; the medians
count. Prints a Markdown table, and whether each bar is met.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools.sample.frames import COUNTS  # noqa: E402

PARTS = ("plain", "one", "two", "killed", "ray", "ray-killed")
SPEEDUP, SAME_LINES = 1.6, 0.999  # the bars
MAX_STARTS = 3  # of the command whose workers are killed: a shard that is hit three times fails, and is tried again
PATHS = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(PATHS), "OMP_WAIT_POLICY": "PASSIVE"}
ON_RAY = """
import sys, regard
regard.on_ray(*sys.argv[1:4], workers=2, threads=1, device="cpu", precision="fp32")
"""


@dataclass
class Result:
    """The times of a kind of run, and its output."""

    seconds: list[float] = field(default_factory=list)
    output: bytes = b""
    note: str = ""


def sentences(count: int) -> list[str]:
    """Return distinct sentences of the sample's grammar, then the same in lower case without their last mark."""
    whole = sorted({english for frame, _ in COUNTS for english, _ in frame()})
    distinct = dict.fromkeys([*whole, *(each.lower().rstrip(".?") for each in whole)])
    if len(distinct) < count:
        raise SystemExit(f"lines: expected at most {len(distinct):,}, got {count:,}")
    lines = list(islice(distinct, count))
    random.Random(1).shuffle(lines)
    return lines


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "regard", *map(str, arguments)]


def children(pid: int) -> list[int]:
    """Return the processes that a process started."""
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def owners(shards: Path) -> list[int]:
    """Return the processes that work on shards."""
    notes = [path.read_text() for path in shards.glob("claims/0*/*") if path.exists()]
    return [int(note.split('"pid": ')[1].split(",")[0]) for note in notes if '"pid": ' in note]


class Killer(threading.Thread):
    """Kills one of some processes at random moments."""

    def __init__(self, victims: Callable[[], Sequence[int]], kills: int, seconds: float) -> None:
        super().__init__(daemon=True)
        self._victims, self._draw = victims, random.Random(2)
        self._moments = sorted(self._draw.uniform(0.1, 0.9) * seconds for _ in range(kills))
        self.killed = 0
        self.ended = False

    def run(self) -> None:
        began = time.monotonic()
        for moment in self._moments:
            time.sleep(max(0.0, began + moment - time.monotonic()))
            while not (victims := self._victims()) and not self.ended:
                time.sleep(0.05)
            if self.ended:
                return
            os.kill(self._draw.choice(victims), signal.SIGKILL)
            self.killed += 1


class Benchmark:
    """Runs the commands in a folder of its own."""

    def __init__(self, folder: Path, model: Path, file: Path, kills: int) -> None:
        self._folder, self._model, self._file, self._kills = folder, model, file, kills
        self.results = {part: Result() for part in PARTS}

    def plain(self) -> None:
        out = self._folder / "plain.txt"
        given = ["-i", self._file, "-o", out, "--threads", 1, "--precision", "fp32", "--quiet"]
        self._timed("plain", command("translate", self._model, *given))
        self.results["plain"].output = out.read_bytes()

    def workers(self, part: str, count: int) -> None:
        shards = self._folder / "shards"
        self._timed(part, self._sharded(shards, count))
        self._collect(part, shards)

    def killed(self) -> None:
        shards = self._folder / "shards"
        expected = statistics.median(self.results["two"].seconds)
        began, starts, killed, code = time.monotonic(), 0, 0, 1
        while code and starts < MAX_STARTS:
            starts += 1
            run = subprocess.Popen(self._sharded(shards, 2), env=ENVIRONMENT)
            killer = Killer(partial(children, run.pid), self._kills - killed, expected)
            killer.start()
            code, killer.ended = run.wait(), True
            killer.join()
            killed += killer.killed
        self.results["killed"].seconds.append(time.monotonic() - began)
        self.results["killed"].note = f"{killed} workers killed, {starts} starts of the command"
        self._collect("killed", shards)

    def ray(self, part: str) -> None:
        shards = self._folder / "shards"
        kills = 1 if part == "ray-killed" else 0
        killer = Killer(lambda: owners(shards), kills, statistics.median(self.results["two"].seconds))
        killer.start()
        self._timed(part, [sys.executable, "-c", ON_RAY, str(self._model), str(self._file), str(shards)])
        killer.ended = True
        killer.join()
        self.results[part].note = f"{killer.killed} actors killed"
        self._collect(part, shards)

    def _sharded(self, shards: Path, workers: int) -> list[str]:
        given = ["-i", self._file, "--shards", shards, "--workers", workers, "--threads", 1, "--precision", "fp32"]
        return command("translate", self._model, *given, "--quiet")

    def _timed(self, part: str, arguments: list[str]) -> None:
        began = time.monotonic()
        subprocess.run(arguments, env=ENVIRONMENT, check=True)
        self.results[part].seconds.append(time.monotonic() - began)
        print(f"{part}: {self.results[part].seconds[-1]:.1f} s", file=sys.stderr, flush=True)

    def _collect(self, part: str, shards: Path) -> None:
        """Join the shards and remove them."""
        out = self._folder / "joined.txt"
        joining = command("translate", self._model, "--shards", shards, "--join", "-o", out)
        subprocess.run(joining, check=True, env=ENVIRONMENT)
        self.results[part].output = out.read_bytes()
        shutil.rmtree(shards)


def same_lines(one: bytes, two: bytes) -> float:
    """Return the fraction of equal lines."""
    lines = list(zip(one.split(b"\n")[:-1], two.split(b"\n")[:-1], strict=True))
    return sum(first == second for first, second in lines) / len(lines)


def report(results: dict[str, Result], count: int) -> None:
    """Print the table and the bars."""
    print(
        "| run | seconds | lines/s | equal to two workers | lines as the plain command's | |\n|---|---|---|---|---|---|"
    )
    two, plain = results["two"].output, results["plain"].output
    for part, result in results.items():
        if not result.seconds:
            continue
        seconds = statistics.median(result.seconds)
        spread = f" ({min(result.seconds):.1f} to {max(result.seconds):.1f})" if len(result.seconds) > 1 else ""
        equal = "" if part == "plain" else "yes" if result.output == two else "no"
        same = f"{same_lines(result.output, plain):.3%}" if plain else ""
        print(f"| {part} | {seconds:.1f}{spread} | {count / seconds:,.0f} | {equal} | {same} | {result.note} |")
    times = {part: statistics.median(result.seconds) for part, result in results.items() if result.seconds}
    bars = {}
    if {"one", "two"} <= times.keys():
        bars[f"two workers ≥ {SPEEDUP} × one: {times['one'] / times['two']:.2f} ×"] = (
            times["one"] / times["two"] >= SPEEDUP
        )
    if {"one", "plain"} <= times.keys():
        bars[f"one worker as fast as the plain command: {times['plain'] / times['one']:.2f} ×"] = (
            times["one"] <= times["plain"]
        )
    for part in set(times) & {"one", "killed", "ray", "ray-killed"}:
        bars[f"{part}: the output of two workers, byte for byte"] = results[part].output == two
    if {"two", "plain"} <= times.keys():
        bars[f"the plain command's output in ≥ {SAME_LINES:.1%} of lines"] = same_lines(two, plain) >= SAME_LINES
    for bar, met in bars.items():
        print(f"{'met' if met else 'NOT MET'}: {bar}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--lines", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = given.model.resolve() if given.model else folder / "demo"
        if given.model is None:
            subprocess.run(command("demo", "--out", model), check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
        file = folder / "lines.gz"
        file.write_bytes(gzip.compress("".join(f"{line}\n" for line in sentences(given.lines)).encode()))
        benchmark = Benchmark(folder, model, file, given.kills)
        for _ in range(given.runs):
            if "plain" in given.only:
                benchmark.plain()
            for part, count in (("one", 1), ("two", 2)):
                if part in given.only:
                    benchmark.workers(part, count)
        if "killed" in given.only:
            benchmark.killed()
        for part in ("ray", "ray-killed"):
            if part in given.only:
                benchmark.ray(part)
        report(benchmark.results, given.lines)


if __name__ == "__main__":
    main()
