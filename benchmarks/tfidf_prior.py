"""The classifier's member `tfidf` by itself, with and without its prior of naive Bayes, on held-out parts of train.

    python benchmarks/tfidf_prior.py --data FOLDER [--sets sst2 trec ag-news imdb-long] [--folds 4] [--c 20 10]

A set is a folder with train.tsv or train.jsonl.gz. The texts are split into folds by a hash; each fold is scored by a
regression that was fitted to the others. Without the prior, all weights are regularized alike, by 1 / (2 C).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import torch
from classification import SETS, data_file

from regard.config.recipe_text import read_recipe
from regard.experiments.best.classification import hashed_folds
from regard.models.documents import tfidf
from regard.models.documents.logistic import SparseRows
from regard.tasks.classification.task import ClassificationTask
from regard.text.documents import DocumentBatch
from regard.text.labelled import read_labelled
from regard.text.pairs import Pair

BATCH = 256  # texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the sets")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--c", type=float, nargs="+", default=[20.0, 10.0], help="C without the prior")
    options = parser.parse_args()
    print(f"{'set':12}{'texts':>7}{'with':>9}" + "".join(f"{f'C = {c:g}':>9}" for c in options.c))
    for name in options.sets:
        pairs = read_labelled([data_file(options.data / name, "train")]).pairs
        scores = [accuracy(pairs, options.folds)]
        for c in options.c:
            with patch.object(tfidf, "log_ratios", no_ratios), patch.object(tfidf, "C", c):
                scores.append(accuracy(pairs, options.folds))
        print(f"{name:12}{len(pairs):7,}" + "".join(f"{score:9.2f}" for score in scores), flush=True)


def no_ratios(features: SparseRows, targets: torch.Tensor) -> torch.Tensor:
    """Return log-ratios [F, C] of 0, with which the prior of all weights is the same."""
    return torch.zeros(features.shape[1], targets.shape[1])


@torch.no_grad()
def accuracy(pairs: Sequence[Pair], count: int) -> float:
    """Return the accuracy in percent on texts that the regression was not fitted to."""
    folds, right = hashed_folds([pair.source for pair in pairs], count), 0
    recipe = read_recipe("classify", {"model.states": "embeddings + tfidf"})
    for fold in range(count):
        held_out = [pair for pair, own in zip(pairs, folds, strict=True) if own == fold]
        others = [pair for pair, own in zip(pairs, folds, strict=True) if own != fold]
        task = ClassificationTask.of(others, held_out, recipe, 1)
        assert task.model.tfidf is not None
        for first in range(0, len(held_out), BATCH):
            part = held_out[first : first + BATCH]
            logits, _ = task.model.tfidf(DocumentBatch.of([task.reader(p.source) for p in part], task.reader.spelling))
            right += sum(
                task.labels[best] == p.target for best, p in zip(logits.argmax(-1).tolist(), part, strict=True)
            )
    return 100 * right / len(pairs)


if __name__ == "__main__":
    main()
