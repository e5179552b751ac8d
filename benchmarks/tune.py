"""Tuning to a domain made by hand: English–Marathi without the pairs that contain a word, then tuned on 500 of them.

    python benchmarks/tune.py --data english-marathi --out runs
    python benchmarks/tune.py --data english-marathi --out runs --base BASE --scratch SCRATCH

The folder of the data has train.tsv and dev.tsv. Four models are compared on the dev pairs with the word (new) and on
those without it (old):

    base      trained on the pairs without the word
    tuned     base, tuned on 500 pairs with the word; old dev pairs measure what is forgotten
    replay    the same, with the old pairs mixed in
    scratch   trained on the pairs without the word and these 500

The 500 are the first by the SHA-256 of their lines. Every model is chosen by the dev pairs that the table scores it on.
`--base` and `--scratch` name models that were trained before.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from pathlib import Path
from typing import NamedTuple

import torch

from regard.commands.screen import Terminal
from regard.metrics.translation import group
from regard.tasks.registry import TRANSLATION, load_for
from regard.tasks.train import train
from regard.tasks.tune import tune
from regard.text.pairs import read_references

SETTINGS = {"training.epochs": 60}
GAIN, FALL = 80.0, 0.5  # wanted: percent of the gain of `scratch`, and points of chrF++ on old dev


class Split(NamedTuple):
    """The files of a domain."""

    old: Path
    new: Path
    both: Path
    old_dev: Path
    new_dev: Path


class Row(NamedTuple):
    """The chrF++ of a model."""

    name: str
    old: float
    new: float


def split(data: Path, folder: Path, word: str, count: int) -> Split:
    """Write the files of the domain of a word into a folder."""
    pattern = re.compile(rf"\b{re.escape(word)}\b")

    def parts(name: str) -> tuple[list[str], list[str]]:
        """Return the lines whose source does not contain the word, and the others."""
        lines = (data / name).read_text(encoding="utf-8").splitlines(keepends=True)
        inside = [bool(pattern.search(line)) for line in lines]
        return [line for line, yes in zip(lines, inside, strict=True) if not yes], [
            line for line, yes in zip(lines, inside, strict=True) if yes
        ]

    (old, new), (old_dev, new_dev) = parts("train.tsv"), parts("dev.tsv")
    new = sorted(new, key=lambda line: hashlib.sha256(line.rstrip("\n").encode()).hexdigest())[:count]
    files = Split(*(folder / f"{name}.tsv" for name in Split._fields))
    for file, lines in zip(files, (old, new, [*old, *new], old_dev, new_dev), strict=True):
        file.write_text("".join(lines), encoding="utf-8")
    return files


def trained(pairs: Path, dev: Path, out: Path) -> None:
    """Train a model as long as the benchmark says; one in the same folder is overwritten."""
    train(pairs, out, dev=dev, recipe="rnn", settings=SETTINGS, device="cpu", overwrite=out.exists(), screen=Terminal())


def scored(name: str, folder: Path, files: Split) -> Row:
    """Return the chrF++ of a model on both dev parts, as `regard evaluate` computes it."""
    translator = load_for(TRANSLATION, folder, "cpu", "fp32")
    old, new = (translator.evaluate(read_references([file])).chrf for file in (files.old_dev, files.new_dev))
    return Row(name, old, new)


def print_table(base: Row, rows: list[Row], scratch: Row) -> None:
    """Print the scores, the fraction of the gain of `scratch`, and the fall on old dev."""
    print(f"{'':10} {'old dev':>8} {'new dev':>8} {'gain':>7} {'of scratch':>11} {'old dev falls':>14}")
    for row in (base, *rows, scratch):
        gain = row.new - base.new
        fraction = 100 * gain / (scratch.new - base.new)
        line = f"{row.name:10} {row.old:8.2f} {row.new:8.2f} {gain:+7.2f} {fraction:9.1f} % {base.old - row.old:14.2f}"
        print(line if row is not base else line[:27])
    print(f"chrF++, beam 5; wanted of a tuned model: at least {GAIN:.0f} % of the gain, a fall of at most {FALL}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="the folder for files and models")
    parser.add_argument("--base", type=Path)
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--word", default="Tom")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    given.out.mkdir(parents=True, exist_ok=True)
    files = split(given.data, given.out, given.word, given.count)
    counts = ", ".join(f"{name} {len(group(read_references([file]))[0]):,}" for name, file in files._asdict().items())
    print(f"sources: {counts}", flush=True)
    base, scratch = given.base or given.out / "base", given.scratch or given.out / "scratch"
    if given.base is None:
        trained(files.old, files.old_dev, base)
    if given.scratch is None:
        trained(files.both, given.data / "dev.tsv", scratch)
    rows = []
    for name, replay in (("tuned", None), ("replay", files.old)):
        out = given.out / name
        options = {
            "dev": files.new_dev,
            "replay": replay,
            "old_dev": files.old_dev,
            "overwrite": out.exists(),
            "screen": Terminal(),
        }
        tune(base, files.new, out, device="cpu", **options)  # type: ignore[arg-type]
        rows.append(scored(name, out, files))
    print_table(scored("base", base, files), rows, scored("scratch", scratch, files))


if __name__ == "__main__":
    main()
