"""The default classifier trained on a GPU beside the CPU: accuracy on dev and seconds, set by set.

    python3 benchmarks/gpu_classification.py --data FOLDER [--sets trec sst2] [--seeds 3] [--threads 2] [--at-a-time 1]

A set is a folder with train.tsv and dev.tsv. Each training is one call of `regard.train(..., task="classify")` with the
default recipe and dev given, from reading the files to the scored model. Seconds are of that whole call. Before the
runs of a device are timed, one of one epoch warms it up: that loads CUDA and compiles kernels, and its seconds are
printed, too. On a CPU of many cores, --at-a-time runs as many of the CPU's seeds beside each other. The bar: means
within one binomial standard error of each other, the GPU in at most half the time.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple


class Runs(NamedTuple):
    """The runs of one set on one device."""

    accuracies: list[float]
    """on dev, in percent"""
    seconds: list[float]
    texts: int
    """in dev"""
    warm_up: float
    """seconds"""

    @property
    def accuracy(self) -> float:
        return statistics.mean(self.accuracies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the sets")
    parser.add_argument("--sets", nargs="+", default=["trec", "sst2"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="CPU threads of every run")
    parser.add_argument("--at-a-time", type=int, default=1, help="trainings on the CPU beside each other")
    parser.add_argument("--devices", nargs="+", default=["cuda", "cpu"], choices=["cuda", "cpu"])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change the recipe")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)  # before torch is loaded
    import torch

    if "cuda" in options.devices and not torch.cuda.is_available():
        raise SystemExit("torch finds no GPU here; --devices cpu runs the CPU's side alone")
    print(f"torch {torch.__version__}, {_gpu(options.devices)}CPU threads: {options.threads}, seeds: {options.seeds}")
    print(f"{'set':8}{'device':8}{'accuracy':>9}  {'each seed':<20}{'seconds':>8}  {'each seed':<20}{'warm-up':>8}")
    for name in options.sets:
        by_device = {device: measured(options.data / name, device, options) for device in options.devices}
        for device, runs in by_device.items():
            each, times = (" ".join(f"{value:.1f}" for value in some) for some in (runs.accuracies, runs.seconds))
            mean = statistics.mean(runs.seconds)
            print(
                f"{name:8}{device:8}{runs.accuracy:9.2f}  {each:<20}{mean:8.1f}  {times:<20}{runs.warm_up:8.1f}",
                flush=True,
            )
        if len(by_device) == 2:
            print(verdict(name, by_device["cuda"], by_device["cpu"]), flush=True)


def measured(folder: Path, device: str, options: argparse.Namespace) -> Runs:
    """Train once to warm up, then once for each seed."""
    settings = dict(each.split("=", 1) for each in options.set)
    _, warm_up = trained(folder, device, 1, options.threads, settings | {"training.epochs": "1"})
    seeds = range(1, options.seeds + 1)
    calls = [(folder, device, seed, options.threads, settings) for seed in seeds]
    if device == "cpu" and options.at_a_time > 1:
        with ProcessPoolExecutor(options.at_a_time, multiprocessing.get_context("spawn")) as pool:
            runs = list(pool.map(trained, *zip(*calls, strict=True)))
    else:
        runs = [trained(*call) for call in calls]
    scores, seconds = zip(*runs, strict=True)
    return Runs([each["accuracy"] for each in scores], list(seconds), scores[0]["texts"], warm_up)


def trained(
    folder: Path, device: str, seed: int, threads: int, settings: dict[str, str]
) -> tuple[dict[str, Any], float]:
    """Return the scores on dev, and the seconds that the call took."""
    import regard

    with tempfile.TemporaryDirectory() as place:
        began = time.monotonic()
        model = regard.train(
            folder / "train.tsv",
            Path(place) / "model",
            task="classify",
            dev=folder / "dev.tsv",
            settings=settings,
            seed=seed,
            threads=threads,
            device=device,
        )
        return model.card["scores"], time.monotonic() - began


def verdict(name: str, gpu: Runs, cpu: Runs) -> str:
    fraction = cpu.accuracy / 100
    error = 100 * math.sqrt(fraction * (1 - fraction) / cpu.texts)
    apart, ratio = gpu.accuracy - cpu.accuracy, statistics.mean(gpu.seconds) / statistics.mean(cpu.seconds)
    holds = "holds" if abs(apart) <= error and ratio <= 0.5 else "DOES NOT HOLD"
    return f"{name}: {apart:+.2f} points at a standard error of {error:.2f}, {ratio:.2f} of the CPU's time: {holds}"


def _gpu(devices: list[str]) -> str:
    import torch

    return f"{torch.cuda.get_device_name()}, " if "cuda" in devices else ""


if __name__ == "__main__":
    main()
