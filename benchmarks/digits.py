"""scikit-learn's handwritten digits, 8 × 8 pixels: attention over patches beside classical classifiers.

    python benchmarks/digits.py [--seeds 3] [--epochs 40] [--threads 1] [--look digits.html]

Images are split by `train_test_split(test_size=0.25, random_state=0, stratify=y)`. A run is scored on the test part
once, when it is over. So small a model is trained faster by one thread than by two. --look lays what decided over a few
test images, those that went wrong first.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import regard
from regard import ImageClassifier, Images
from regard.look import picture
from regard.look.table import table

SETTINGS = {
    "model.patch": 2,
    "model.stem": "conv",
    "model.width": 64,
    "model.heads": 4,
    "model.feedforward": 128,
    "model.layers": 2,
    "training.validations": 1,
    "training.shift": 1,
}
NAMES = [str(digit) for digit in range(10)]


def split() -> tuple[Images, Images]:
    """(train, test)"""
    digits = load_digits()
    parts = train_test_split(digits.images / 16, digits.target, test_size=0.25, random_state=0, stratify=digits.target)
    pixels = [torch.from_numpy(part).float()[:, None] for part in parts[:2]]
    classes = [torch.from_numpy(part).long() for part in parts[2:]]
    return Images(pixels[0], classes[0], NAMES), Images(pixels[1], classes[1], NAMES)


def train(train: Images, test: Images, epochs: int, seed: int) -> tuple[ImageClassifier, float, float]:
    """(model, the fraction of test that is right, seconds)"""
    began = time.monotonic()
    settings = {**SETTINGS, "training.epochs": epochs}
    with tempfile.TemporaryDirectory() as folder:
        model = regard.train(
            train,
            Path(folder) / "model",
            task="images",
            dev=test,
            settings=settings,
            seed=seed,
            device="cpu",
            precision="fp32",
        )
    assert isinstance(model, ImageClassifier)
    right = [label == NAMES[number] for label, number in zip(model.classify(test.pixels), test.classes, strict=True)]
    return model, statistics.mean(right), time.monotonic() - began


def peers(train: Images, test: Images) -> None:
    """Classifiers of scikit-learn as they come, on the same pixels."""
    flattened = [part.pixels.flatten(1).numpy() for part in (train, test)]
    classes = [part.classes.numpy() for part in (train, test)]
    for peer in (LogisticRegression(max_iter=1000), KNeighborsClassifier(), SVC()):
        began = time.monotonic()
        right = float(peer.fit(flattened[0], classes[0]).score(flattened[1], classes[1]))
        print(f"{type(peer).__name__:24} {100 * right:6.2f} %   {time.monotonic() - began:5.1f} s")


def look(model: ImageClassifier, test: Images, path: Path, count: int = 12) -> None:
    """What decided, over test images: those that went wrong first."""
    answers = model.answers(test.pixels)
    right = torch.tensor([each.label == NAMES[number] for each, number in zip(answers, test.classes, strict=True)])
    chosen = torch.argsort(right.long(), stable=True)[:count].tolist()
    shown = [
        (
            replace(
                table(answers[each].trace),
                rows=[f"taken for {answers[each].label}"],
                title=(f"test image {each}, a {NAMES[int(test.classes[each])]}",),
            ),
            1 - test.pixels[each, 0].numpy(),  # ink on paper
        )
        for each in chosen
    ]
    grid = model.model.encoder.options.grid
    picture.save(shown, grid.height, grid.width, path)
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--look", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    training, test = split()
    cores = f"{torch.get_num_threads()} of {os.cpu_count()} cores"
    print(f"{len(training):,} images to train on, {len(test)} to test; {cores}")
    peers(training, test)
    scores, model = [], None
    for seed in range(1, chosen.seeds + 1):
        model, right, seconds = train(training, test, chosen.epochs, seed)
        scores.append(100 * right)
        print(f"{f'Regard, seed {seed}':24} {100 * right:6.2f} %   {seconds:5.1f} s", flush=True)
    spread = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
    print(f"{'Regard, mean':24} {statistics.mean(scores):6.2f} %{spread}")
    if chosen.look and model is not None:
        look(model, test, chosen.look)


if __name__ == "__main__":
    main()
