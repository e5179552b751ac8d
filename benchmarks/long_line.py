"""What one over-long line costs a training: peak memory and time of `regard train` with it and without it.

    python benchmarks/long_line.py pairs.tsv              # the first 1,500 pairs, and one more pair
    python benchmarks/long_line.py --align MODEL pairs.tsv

Every run is a process of its own; its peak resident memory is what the operating system says. Bar: at most 1.2 times
those without the line. With --align, what one pair of 20,000 characters a side costs `regard align --model`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PAIRS = 1_500
WORDS = ["one", "line", "that", "is", "much", "longer", "than", "any", "other"]


def line_of(characters: int) -> str:
    words = WORDS * (characters // len(" ".join(WORDS)) + 1)
    return " ".join(words)[:characters].strip()


CASES = {
    "without": "",
    "990 characters a side": f"{line_of(990)}\t{line_of(990)}\n",
    "2,000 characters a side": f"{line_of(2_000)}\t{line_of(2_000)}\n",
    "20,000 characters a side": f"{line_of(20_000)}\t{line_of(20_000)}\n",
    "5 MB of words": f"{line_of(5_000_000)}\tshort\n",
    "5 MB without a blank": f"{'x' * 5_000_000}\tshort\n",
}


@dataclass(frozen=True)
class Cost:
    seconds: float
    cpu_seconds: float
    megabytes: float
    """at the peak"""
    stderr: str
    """on standard error"""

    def relative_to(self, other: Cost) -> str:
        return (
            f"{self.seconds:6.1f} s × {self.seconds / other.seconds:.2f}   "
            f"{self.cpu_seconds:6.1f} s of CPU × {self.cpu_seconds / other.cpu_seconds:.2f}   "
            f"{self.megabytes:6.0f} MB × {self.megabytes / other.megabytes:.2f}"
        )


def measured(command: list[str]) -> Cost:
    with tempfile.TemporaryFile() as stderr:
        began = time.monotonic()
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        stderr.seek(0)
        text = stderr.read().decode()
    if run.returncode:
        sys.exit(f"{' '.join(command)}: exit code {run.returncode}\n{text}")
    return Cost(time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text)


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("pairs", type=Path, help="a .tsv")
    reader.add_argument("--align", type=Path, metavar="MODEL")
    reader.add_argument("--epochs", type=int, default=2)
    reader.add_argument("--repeats", type=int, default=1, help="the fastest run counts")
    given = reader.parse_args()
    lines = given.pairs.read_text(encoding="utf-8").split("\n")[:PAIRS]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole: Cost | None = None
        for case, more in CASES.items():
            data = folder / "pairs.tsv"
            data.write_text("\n".join(lines) + "\n" + more, encoding="utf-8")
            out = folder / "model"
            if given.align is None:
                arguments = ["train", str(data), "--out", str(out), "--set", f"training.epochs={given.epochs}"]
                arguments += ["--threads", "1", "--device", "cpu", "--overwrite"]
            else:
                arguments = ["align", str(data), "--model", str(given.align), "--threads", "1"]
            runs = [measured([sys.executable, "-m", "regard", *arguments]) for _ in range(given.repeats)]
            cost = min(runs, key=lambda run: run.seconds)
            whole = whole or cost
            notice = next((line for line in cost.stderr.splitlines() if "longer than" in line), "")
            print(f"{case:26} {cost.relative_to(whole)}   {notice}", flush=True)


if __name__ == "__main__":
    main()
