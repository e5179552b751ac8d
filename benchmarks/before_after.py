"""Two checkouts of this project side by side, alternating: did a change make it slower?

    python benchmarks/before_after.py BEFORE [AFTER] --multi30k FOLDER [--only NAME ...] [--rounds 7] [--updates 40]

BEFORE and AFTER are checkouts; AFTER is this one by default. Each measurement is a process of its own that imports the
package and benchmarks/ of its checkout. Attention is forward + backward of the works of cpu_attention.py, training and
translation those of cpu_training.py, of this project alone. A line says the medians and their ratio, and whether the
new median is at most 3 % slower or within the interquartile range of the old times. The machine should be idle.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from cpu_training import subword_files

ATTENTION = ("window", "strided", "longformer", "bigbird", "additive", "full")
MODELS = ("rnn", "transformer")
SLOWER = 1.03
ATTENTION_CODE = """
import statistics, torch
from cpu_attention import WORKS, run
torch.set_num_threads(2)
work = WORKS[{name!r}]
inputs = work.inputs()
step = work.ours(inputs)
run(step, inputs)
print(statistics.median(run(step, inputs) for _ in range(5)))
"""

Seconds = Callable[[Path], float]
"""measures one checkout"""


def output(checkout: Path, *arguments: str) -> str:
    """Run Python with the package and the benchmarks of a checkout; return the last line that it prints."""
    environment = {**os.environ, "PYTHONPATH": f"{checkout}{os.pathsep}{checkout / 'benchmarks'}"}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, cwd=checkout)
    if done.returncode:
        raise RuntimeError(f"{checkout}: {done.stderr[-3000:]}")
    return done.stdout.splitlines()[-1]


def attention(name: str) -> Seconds:
    return lambda checkout: float(output(checkout, "-c", ATTENTION_CODE.format(name=name)))


def training(model: str, folder: str, updates: int, precision: str) -> Seconds:
    options = ("--folder", folder, "--threads", "2", "--updates", str(updates), "--warmup", "10")
    return _rate("tokens", "train", "--model", model, *options, "--precision", precision)


def translation(model: str, folder: str) -> Seconds:
    options = ("--folder", folder, "--threads", "2", "--beam", "5", "--batch", "64", "--steps", "16")
    return _rate("sentences", "translate", "--model", model, *options, "--precision", "fp32")


def _rate(unit: str, *arguments: str) -> Seconds:
    """Return the seconds of one unit."""

    def measure(checkout: Path) -> float:
        report = json.loads(output(checkout, "-m", "peers.regard_side", *arguments))
        return 1 / float(report[f"{unit}_per_second"])

    return measure


def compare(name: str, measure: Seconds, checkouts: list[Path], rounds: int) -> bool:
    """Measure both checkouts in turn; print and return whether the new one holds."""
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for checkout, seconds in zip(checkouts, times, strict=True):
            seconds.append(measure(checkout))
    before, after = map(statistics.median, times)
    quartiles = statistics.quantiles(times[0], n=4)
    holds = after <= SLOWER * before or after <= quartiles[2]
    text = f"{name:28} {before:10.4g} s → {after:10.4g} s   × {after / before:.3f}"
    print(f"{text}   (before: {quartiles[0]:.4g} … {quartiles[2]:.4g})   {'holds' if holds else 'SLOWER'}", flush=True)
    return holds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="?", default=Path(__file__).parents[1])
    parser.add_argument("--multi30k", type=Path, help="holds train.en.gz, train.de.gz, val.en.gz, val.de.gz")
    parser.add_argument("--only", nargs="+", help="some of the names that are printed")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--updates", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        works = {f"attention, {name}": attention(name) for name in ATTENTION}
        if options.multi30k is not None:
            subword_files(options.multi30k, Path(folder))
            for model in MODELS:
                for precision in ("fp32", "bf16"):
                    works[f"training, {model}, {precision}"] = training(model, folder, options.updates, precision)
                works[f"translation, {model}"] = translation(model, folder)
        chosen = {name: measure for name, measure in works.items() if options.only is None or name in options.only}
        checkouts = [options.before.resolve(), options.after.resolve()]
        held = [compare(name, measure, checkouts, options.rounds) for name, measure in chosen.items()]
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
