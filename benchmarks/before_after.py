"""Two checkouts of this project side by side, alternating: did a change make it slower?

    python benchmarks/before_after.py BEFORE [AFTER] --multi30k FOLDER [--only NAME ...] [--rounds 7] [--updates 40]
    python benchmarks/before_after.py BEFORE [AFTER] --gpu [--rounds 7]

BEFORE and AFTER are checkouts; AFTER is this one by default. Each measurement is a process of its own that imports the
package and benchmarks/ of its checkout. Attention is forward + backward of the works of cpu_attention.py, training and
translation those of cpu_training.py, of this project alone; with --gpu they are the works of gpu_attention.py and the
step of gpu_training.py. A line says the medians and their ratio, and whether the
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
GPU_CODE = """
import json, torch
import gpu_attention as bench, gpu_training as training
from gpu_timing import both_ways, timed

def seconds(look, inputs, shape):
    gradient = torch.randn(shape, device="cuda", dtype=inputs[0].dtype)
    return timed({"ours": both_ways(look, inputs, gradient)}, 9)["ours"] / 1e3

report = {}
for dtype in (torch.float32, torch.bfloat16):
    inputs = bench.additive_inputs(**bench.SHAPE, dtype=dtype)
    shape = [bench.SHAPE[name] for name in ("batch", "queries", "features")]
    report[f"additive, {str(dtype)[6:]}"] = seconds(bench.ours_additive, inputs, shape)
for name, (pattern, positions, _) in bench.PATTERNS.items():
    inputs = bench.heads(positions)
    report[name] = seconds(bench.ours_look(pattern), inputs, inputs[0].shape)
inputs = bench.heads(16384)
report["full"] = seconds(bench.ours_look(bench.Full()), inputs, inputs[0].shape)
training.losses = lambda *_, **__: [1.0, 1.0]  # the step's time alone
report["training step"] = training.step(3)["ms"]["regard"] / 1e3
print(json.dumps(report))
"""

Seconds = Callable[[Path], float]
"""measures one checkout"""


def output(checkout: Path, *arguments: str) -> str:
    """Run Python with the package and the benchmarks of a checkout; return the last line that it prints."""
    path = [str(checkout), str(checkout / "benchmarks"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
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


def compare(name: str, before: list[float], after: list[float]) -> bool:
    """Print the medians; return whether the new one holds."""
    old, new = statistics.median(before), statistics.median(after)
    quartiles = statistics.quantiles(before, n=4)
    holds = new <= SLOWER * old or new <= quartiles[2]
    text = f"{name:28} {old:10.4g} s → {new:10.4g} s   × {new / old:.3f}"
    print(f"{text}   (before: {quartiles[0]:.4g} … {quartiles[2]:.4g})   {'holds' if holds else 'SLOWER'}", flush=True)
    return holds


def compare_in_turn(name: str, measure: Seconds, checkouts: list[Path], rounds: int) -> bool:
    """Measure one work of both checkouts in turn."""
    times = [[measure(checkout) for checkout in checkouts] for _ in range(rounds)]
    return compare(name, *map(list, zip(*times, strict=True)))


def compare_on_gpu(checkouts: list[Path], rounds: int) -> list[bool]:
    """Measure the works of a GPU, all of them in each process."""
    reports: list[list[dict[str, float]]] = []
    for _ in range(rounds):
        reports.append([json.loads(output(checkout, "-c", GPU_CODE)) for checkout in checkouts])
        print(json.dumps(reports[-1]), file=sys.stderr, flush=True)
    return [
        compare(f"GPU, {name}", *([report[side][name] for report in reports] for side in (0, 1)))
        for name in reports[0][0]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="?", default=Path(__file__).parents[1])
    parser.add_argument("--multi30k", type=Path, help="holds train.en.gz, train.de.gz, val.en.gz, val.de.gz")
    parser.add_argument("--only", nargs="+", help="some of the names that are printed")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--gpu", action="store_true", help="the works of a GPU instead")
    options = parser.parse_args()
    checkouts = [options.before.resolve(), options.after.resolve()]
    if options.gpu:
        sys.exit(0 if all(compare_on_gpu(checkouts, options.rounds)) else 1)
    with tempfile.TemporaryDirectory() as folder:
        works = {f"attention, {name}": attention(name) for name in ATTENTION}
        if options.multi30k is not None:
            subword_files(options.multi30k, Path(folder))
            for model in MODELS:
                for precision in ("fp32", "bf16"):
                    works[f"training, {model}, {precision}"] = training(model, folder, options.updates, precision)
                works[f"translation, {model}"] = translation(model, folder)
        chosen = {name: measure for name, measure in works.items() if options.only is None or name in options.only}
        verdicts = [compare_in_turn(name, measure, checkouts, options.rounds) for name, measure in chosen.items()]
    sys.exit(0 if all(verdicts) else 1)


if __name__ == "__main__":
    main()
