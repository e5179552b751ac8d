"""How good are the models of `regard train`: several settings, data sets and seeds, on dev, in one table.

    python benchmarks/quality.py --data DIR [--sets english-hindi,english-spanish] [--pairs 1000,3000,all]
                                 [--seeds 1,2] [--at-a-time 4] [--device cuda] [--out FILE.jsonl] SETTING [SETTING ...]

A SETTING is a name and the options of `regard train` that it stands for: "default=", "rnn 5=--recipe rnn --minutes 5",
"smooth=--set training.label_smoothing=0.2". DIR holds a folder for each data set: train.tsv or train.tsv.gz and
dev.tsv, or train.SOURCE.gz, train.TARGET.gz, val.SOURCE.gz and val.TARGET.gz in a folder whose name ends in
-SOURCE-TARGET.

With --pairs, a run learns from so many pairs of a set, those with the lowest hashes; dev stays whole. Each run is one
process; --at-a-time of them share the device, so scores can be compared and times cannot. Scores are those of the
model's card: beam search on all of dev. Finished runs are appended to --out as JSON lines; those that stand there
already are not run again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from regard.text.pairs import read_pairs

ROOT = Path(__file__).resolve().parent.parent
SCORES = ("bleu", "chrf", "exact")


def files(data: Path) -> list[str]:
    """Return the arguments of `regard train` that name the data."""
    for name in ("train.tsv", "train.tsv.gz"):
        if (data / name).is_file():
            return [str(data / name), "--dev", str(data / "dev.tsv")]
    sides = data.name.split("-")[-2:]
    train, dev = ([str(data / f"{part}.{side}.gz") for side in sides] for part in ("train", "val"))
    if len(sides) < 2 or not Path(train[0]).is_file():
        raise ValueError(f"{data}: expected train.tsv, train.tsv.gz or two parallel files")
    return [*train, "--dev", dev[0], "--dev", dev[1]]


def some_pairs(arguments: list[str], count: str, folder: Path) -> list[str]:
    """Return the arguments with the training data replaced by a file of so many of its pairs; "all": as they are."""
    if count == "all":
        return arguments
    train = arguments[: arguments.index("--dev")]
    lines = [f"{pair.source}\t{pair.target}\n" for pair in read_pairs(train).pairs]
    lines.sort(key=lambda line: hashlib.sha256(line.encode()).digest())
    (folder / "train.tsv").write_text("".join(lines[: int(count)]), encoding="utf-8")
    return [str(folder / "train.tsv"), *arguments[len(train) :]]


def run(case: tuple[Path, str, str, int], device: str | None) -> dict[str, Any]:
    """Train one model for (data, number of pairs, setting, seed), and return its scores, minutes and size."""
    data, pairs, setting, seed = case
    name, _, options = setting.partition("=")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "model"
        given = some_pairs(files(data), pairs, Path(folder))
        command = [sys.executable, "-m", "regard", "train", *given, "--out", str(out), "--seed", str(seed)]
        command += shlex.split(options) + (["--device", device] if device else [])
        began = time.monotonic()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.getenv("PYTHONPATH")]))}
        done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stderr[-3000:]}")
        card = json.loads((out / "card.json").read_text(encoding="utf-8"))
    facts = {"set": set_name(data.name, pairs), "setting": name, "options": options, "seed": seed}
    scores = {score: round(card["scores"][score], 2) for score in SCORES}
    minutes = round((time.monotonic() - began) / 60, 2)
    return {**facts, **scores, "minutes": minutes, "parameters": card["parameters"], "ended": card["ended"]}


def set_name(data: str, pairs: str) -> str:
    return data if pairs == "all" else f"{data}, {int(pairs):,} pairs"


def table(results: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the table: means over seeds, and the spread of chrF++."""
    lines = ["| set | setting | seeds | BLEU | chrF++ | exact % | minutes |", "|---|---|---|---|---|---|---|"]
    for key in dict.fromkeys((each["set"], each["setting"]) for each in results):
        some = [each for each in results if (each["set"], each["setting"]) == key]
        means = {name: statistics.mean(each[name] for each in some) for name in (*SCORES, "minutes")}
        values = [each["chrf"] for each in some]
        spread = f" ({min(values):.1f} … {max(values):.1f})" if len(some) > 1 else ""
        scores = f"{means['bleu']:.1f} | {means['chrf']:.1f}{spread} | {means['exact']:.1f} | {means['minutes']:.1f}"
        lines.append(f"| {key[0]} | {key[1]} | {len(some)} | {scores} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="+", metavar="SETTING")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default="english-marathi,multi30k-en-de,english-hindi,english-spanish")
    parser.add_argument("--pairs", default="all")
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--at-a-time", type=int, default=1)
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path, default=Path("quality.jsonl"))
    given = parser.parse_args()
    results = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    known = {(each["set"], each["setting"], each["seed"]) for each in results}

    def measure(case: tuple[Path, str, str, int]) -> None:
        result = run(case, given.device)
        results.append(result)
        with given.out.open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(json.dumps(result), file=sys.stderr, flush=True)

    cases = [(given.data / name, pairs, setting, int(seed)) for seed in given.seeds.split(",")
             for name in given.sets.split(",") for pairs in given.pairs.split(",")
             for setting in given.settings]  # fmt: skip
    left = [
        (data, pairs, setting, seed)
        for data, pairs, setting, seed in cases
        if (set_name(data.name, pairs), setting.partition("=")[0], seed) not in known
    ]
    with ThreadPoolExecutor(given.at_a_time) as pool:
        list(pool.map(measure, left))
    print("\n".join(table(sorted(results, key=lambda each: (each["set"], each["setting"], each["seed"])))))


if __name__ == "__main__":
    main()
