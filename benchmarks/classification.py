"""Text classification from scratch beside TF-IDF with logistic regression, on the same texts, in one table.

    python benchmarks/classification.py --data FOLDER [--sets sst2 trec ag-news imdb-long] [--seeds 3] [--set KEY=VALUE]
    python benchmarks/classification.py --data FOLDER --members 4      # `--best`: members weighted by folds of train
    python benchmarks/classification.py --data FOLDER --members 4 --device cuda --at-a-time 3 --no-baseline

A set is a folder with train.tsv and dev.tsv, or .jsonl.gz files. Regard trains on all of train by the recipe `classify`
and what the size of the data makes of it; dev is looked at once, when training is over, and chooses nothing. The other
side is scikit-learn's: TF-IDF of words and pairs of words with logistic regression, whose settings are chosen by
cross-validation on train. Accuracy is over all lines of dev; its standard error is that of a share of so many texts.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import regard
from regard.experiments.best.classification import train_best_classifier
from regard.models.documents.classifier import ClassifierOptions
from regard.tasks.classification.predictor import Classifier
from regard.text.labelled import read_gold, read_labelled
from regard.text.pairs import Pair

SETS = ("sst2", "trec", "ag-news", "imdb-long")
ENDINGS = (".tsv", ".jsonl.gz", ".jsonl", ".tsv.gz")


class Run(NamedTuple):
    """The scores of one trained model on dev."""

    accuracy: float
    standard_error: float
    macro_f1: float
    seconds: float
    members: str
    """the states of the members, with their weights if these were fitted"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the sets")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change the recipe")
    parser.add_argument("--members", type=int, help="weight the members by so many folds of train")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--at-a-time", type=int, default=1, help="seeds that train beside each other")
    parser.add_argument("--no-baseline", action="store_true", help="leave TF-IDF out, and scikit-learn with it")
    parser.add_argument("--json", type=Path, help="write everything here too")
    options = parser.parse_args()
    heads = f"{'TF-IDF + LR':>13}  {'Regard, mean':>13}  {'each seed':<24}{'± of dev':>9}{'macro-F1':>10}{'seconds':>9}"
    print(" " * 12 + heads)
    rows = []
    for name in options.sets:
        row = compared(options.data / name, options)
        rows.append(row)
        each = " ".join(f"{value:.1f}" for value in row["accuracies"])
        print(
            f"{row['set']:12}{row['tfidf']:13.2f}  {row['accuracy']:13.2f}  {each:<24}{row['standard_error']:9.2f}"
            f"{row['macro_f1']:10.2f}{row['seconds']:9.0f}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def compared(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    train, dev = (data_file(folder, part) for part in ("train", "dev"))
    gold = read_gold([dev])
    print(f"{folder.name}: TF-IDF with logistic regression", file=sys.stderr)
    others = math.nan if options.no_baseline else tfidf(read_labelled([train]).pairs, gold, options.threads)
    run, seeds = partial(scored, train, dev, options), range(1, options.seeds + 1)
    if options.at_a_time > 1:
        with ProcessPoolExecutor(options.at_a_time, multiprocessing.get_context("spawn")) as pool:
            runs = list(pool.map(run, seeds))
    else:
        runs = list(map(run, seeds))
    return {
        "set": folder.name,
        "tfidf": others,
        "accuracy": statistics.mean(each.accuracy for each in runs),
        "accuracies": [each.accuracy for each in runs],
        "standard_error": runs[0].standard_error,
        "macro_f1": statistics.mean(each.macro_f1 for each in runs),
        "seconds": statistics.mean(each.seconds for each in runs),
        "members": [each.members for each in runs],
    }


def scored(train: Path, dev: Path, options: argparse.Namespace, seed: int) -> Run:
    """Train a model and score it on dev."""
    settings = {"training.validations": 1} | dict(each.split("=", 1) for each in options.set)
    with tempfile.TemporaryDirectory() as place:
        began = time.monotonic()
        model = trained(train, dev, Path(place), settings, seed, options)
        seconds, scores = time.monotonic() - began, model.evaluate(read_gold([dev]))
    chosen = model.recipe.model
    assert isinstance(chosen, ClassifierOptions)
    members = f"{chosen.states}, weighted {chosen.member_weights or 'equally'}"
    print(
        f"{train.parent.name}: Regard, seed {seed}: {scores.accuracy:.2f}, {members}, {seconds:.0f} s", file=sys.stderr
    )
    return Run(scores.accuracy, scores.standard_error, scores.macro_f1, seconds, members)


def trained(
    train: Path, dev: Path, place: Path, settings: dict[str, Any], seed: int, options: argparse.Namespace
) -> Classifier:
    common: dict[str, Any] = {"settings": settings, "seed": seed, "threads": options.threads, "device": options.device}
    if options.members:
        texts, dev_texts = (read_labelled([path]).pairs for path in (train, dev))
        parts = place / "parts", place / "model"
        return train_best_classifier(texts, dev_texts, *parts, members=options.members, **common)
    model = regard.train(train, place / "model", task="classify", dev=dev, **common)
    assert isinstance(model, Classifier)
    return model


def tfidf(train: Sequence[Pair], dev: Sequence[Pair], threads: int) -> float:
    """Accuracy on dev, in percent, with the settings that cross-validation on train prefers."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    line = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(max_iter=2000))
    choices = {
        "tfidfvectorizer__ngram_range": [(1, 1), (1, 2)],
        "tfidfvectorizer__token_pattern": [r"(?u)\b\w\w+\b", r"[^\W_]+|[^\w\s]"],
        "logisticregression__C": [1, 10, 100],
    }
    search = GridSearchCV(line, choices, cv=5, n_jobs=threads)
    search.fit([pair.source for pair in train], [pair.target for pair in train])
    predicted = search.predict([pair.source for pair in dev])
    right = sum(bool(label == pair.target) for label, pair in zip(predicted, dev, strict=True))
    return 100 * right / len(dev)


def data_file(folder: Path, part: str) -> Path:
    for ending in ENDINGS:
        if (folder / f"{part}{ending}").is_file():
            return folder / f"{part}{ending}"
    raise SystemExit(f"{folder}: expected {part}.tsv or {part}.jsonl.gz, and there is neither")


if __name__ == "__main__":
    main()
