"""Does `regard train --minutes N` take N minutes, and does more time never give a worse model?

    python benchmarks/minutes.py --data DIR [--sets english-hindi,trec] [--recipes rnn,transformer]
                                 [--minutes 0.5,1,2,5] [--out FILE.jsonl]

DIR holds a folder for each data set, with train.tsv or train.tsv.gz and dev.tsv. Each case is one `python -m regard
train` on 2 threads, timed from its start to its exit; trec is a classifier with its default recipe, the others are
translators. Cases run one after another: the machine should be idle.

- time: wall seconds as a percentage of the minutes. The bar is 85 to 103 %, plus 2 s at 1 minute and below; less only
  if the run says that dev stopped improving.
- dev: chrF++ of beam search, or accuracy, with its standard error (bootstrap over sources; binomial). The bar is not
  lower than at the shorter time by more than one standard error.

Finished cases are appended to --out as JSON lines; those that stand there already are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import regard
from regard.metrics.translation import group
from regard.tasks.translation.predictor import Translator
from regard.text.normal import tidy
from regard.text.pairs import read_references

SETS = "english-marathi,english-french,english-spanish,english-hindi,trec"
LABELLED = ("trec",)
ROOT = Path(__file__).resolve().parent.parent
STOPPED = "no better for"
"""how a run begins the reason that lets it end early"""
BOOTSTRAP = 300
"""samples of dev"""


def train(data: Path, recipe: str, minutes: float, seed: int, out: Path) -> float:
    """Train as a process of its own, and return its wall seconds."""
    files = [file for name in ("train.tsv", "train.tsv.gz") if (file := data / name).is_file()]
    if not files:
        raise ValueError(f"{data}: expected train.tsv or train.tsv.gz")
    kind = ["--task", "classify"] if data.name in LABELLED else ["--recipe", recipe]
    options = ["--dev", str(data / "dev.tsv"), "--minutes", str(minutes), "--threads", "2", "--seed", str(seed)]
    command = [sys.executable, "-m", "regard", "train", str(files[0]), "--out", str(out), *kind, *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    began = time.monotonic()
    done = subprocess.run([*command, "--device", "cpu"], env=environment, stderr=subprocess.PIPE, text=True)
    seconds = time.monotonic() - began
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return seconds


def score(folder: Path, dev: Path) -> tuple[float, float]:
    """Return the model's score on dev and its standard error."""
    model = regard.load(folder, "cpu")
    if not isinstance(model, Translator):
        return model.card["scores"]["accuracy"], model.card["scores"]["standard_error"]
    from sacrebleu.metrics.chrf import CHRF

    sources, references = group(read_references([dev]))
    most = max(map(len, references))
    tidied: Any = [[tidy(known[k]) if k < len(known) else None for known in references] for k in range(most)]
    result = CHRF(word_order=2).corpus_score(model.translate(sources), tidied, n_bootstrap=BOOTSTRAP)
    return float(result.score), float(result._ci) / 1.96  # half of the interval that holds 95 %


def case(data: Path, recipe: str, minutes: float, seed: int) -> dict[str, Any]:
    """Run one case, and return its row."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        seconds = train(data, recipe, minutes, seed, folder)
        entries = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
        (end,) = (entry for entry in entries if entry["kind"] == "end")
        plan = [entry for entry in entries if entry["kind"] == "plan"][-1:]
        dev, error = score(folder, data / "dev.tsv")
    return {
        "set": data.name,
        "recipe": recipe,
        "minutes": minutes,
        "seed": seed,
        "seconds": round(seconds, 2),
        "percent": round(100 * seconds / (60 * minutes), 1),
        "updates": end["update"],
        "best_update": end["best_update"],
        "batch": plan[0].get("batch", 1.0) if plan else 1.0,
        "validations": sum(entry["kind"] == "validation" for entry in entries),
        "dev": round(dev, 2),
        "standard_error": round(error, 2),
        "why": end["why"],
    }


def in_time(row: dict[str, Any]) -> bool:
    limit = 60 * row["minutes"]
    late = row["seconds"] > 1.03 * limit + (2 if row["minutes"] <= 1 else 0)
    early = row["seconds"] < 0.85 * limit and not row["why"].startswith(STOPPED)
    return not (late or early)


def verdict(row: dict[str, Any], shorter: dict[str, Any] | None) -> str:
    """Name the bars that the row misses."""
    missed = [] if in_time(row) else ["TIME"]
    if shorter is not None and row["dev"] < shorter["dev"] - shorter["standard_error"]:
        missed.append("WORSE")
    return " ".join(missed) or "ok"


def cases(sets: list[str], recipes: list[str], minutes: list[float]) -> Iterator[tuple[str, str, float]]:
    for name in sets:
        for recipe in ["classify"] if name in LABELLED else recipes:
            for each in minutes:
                yield name, recipe, each


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--recipes", default="rnn,transformer")
    parser.add_argument("--minutes", default="0.5,1,2,5")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a file of JSON lines, to go on with")
    given = parser.parse_args()
    minutes = sorted(float(each) for each in given.minutes.split(","))
    written = given.out.read_text(encoding="utf-8").splitlines() if given.out and given.out.exists() else []
    done = {(row["set"], row["recipe"], row["minutes"], row["seed"]): row for row in map(json.loads, written)}
    print("set               recipe       minutes  seconds      %  updates  batch  dev            why")
    before: dict[str, Any] | None = None
    for name, recipe, each in cases(given.sets.split(","), given.recipes.split(","), minutes):
        row = done.get((name, recipe, each, given.seed))
        if row is None:
            row = case(given.data / name, recipe, each, given.seed)
            if given.out:
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
        same = before is not None and (before["set"], before["recipe"]) == (name, recipe)
        print(
            f"{name:17} {recipe:11} {each:8g} {row['seconds']:8.1f} {row['percent']:6.1f} {row['updates']:8,} "
            f"{row['batch']:6.2f}  {row['dev']:5.2f} ± {row['standard_error']:4.2f}  "
            f"{verdict(row, before if same else None):11} {row['why']}",
            flush=True,
        )
        before = row


if __name__ == "__main__":
    main()
