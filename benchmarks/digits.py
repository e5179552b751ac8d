"""scikit-learn's handwritten digits, 8 × 8 pixels: attention over patches beside classical classifiers.

    python benchmarks/digits.py [--seeds 3] [--epochs 40] [--threads 1] [--look digits.html]

Pictures are split by `train_test_split(test_size=0.25, random_state=0, stratify=y)`. A run is scored on the test part
once, when it is over. So small a model is trained faster by one thread than by two. --look lays what decided over a few
test pictures, those that went wrong first.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from regard.look import picture
from regard.look.table import Table
from regard.models.image import PictureClassifier, PictureOptions
from regard.training.direct import train_task
from regard.training.picturing import Pictures, Picturing, classify
from regard.training.recipe import TrainingRecipe

OPTIONS = PictureOptions(8, 8, 1, patch=2, stem="conv", width=64, heads=4, feedforward=128, layers=2)
NAMES = [str(digit) for digit in range(10)]


def split() -> tuple[Pictures, Pictures]:
    """(train, test)"""
    digits = load_digits()
    parts = train_test_split(digits.images / 16, digits.target, test_size=0.25, random_state=0, stratify=digits.target)
    pixels = [torch.from_numpy(part).float()[:, None] for part in parts[:2]]
    classes = [torch.from_numpy(part).long() for part in parts[2:]]
    return Pictures(pixels[0], classes[0]), Pictures(pixels[1], classes[1])


def train(train: Pictures, test: Pictures, epochs: int, seed: int) -> tuple[PictureClassifier, float, float]:
    """(model, share of test that is right, seconds)"""
    began = time.monotonic()
    training = TrainingRecipe(
        epochs=epochs,
        batch_sentences=32,
        learning_rate=0.002,
        warmup=100,
        weight_decay=0.01,
        average=0.99,
        validations=1,
        patience=0,
    )
    task = Picturing.of(train, test, NAMES, OPTIONS, training, seed, shift=1)
    train_task(task, device="cpu", precision="fp32")
    right = float((classify(task.model, test.pixels) == test.classes).double().mean())
    return task.model.eval(), right, time.monotonic() - began


def peers(train: Pictures, test: Pictures) -> None:
    """Classifiers of scikit-learn as they come, on the same pixels."""
    flat = [part.pixels.flatten(1).numpy() for part in (train, test)]
    classes = [part.classes.numpy() for part in (train, test)]
    for peer in (LogisticRegression(max_iter=1000), KNeighborsClassifier(), SVC()):
        began = time.monotonic()
        right = float(peer.fit(flat[0], classes[0]).score(flat[1], classes[1]))
        print(f"{type(peer).__name__:24} {100 * right:6.2f} %   {time.monotonic() - began:5.1f} s")


@torch.inference_mode()
def look(model: PictureClassifier, test: Pictures, path: Path, count: int = 12) -> None:
    """What decided, over test pictures: those that went wrong first."""
    seen = model(test.pixels, weights=True)
    said = seen.logits.argmax(-1)
    chosen = torch.argsort((said == test.classes).long(), stable=True)[:count].tolist()
    names = [span.text for span in picture.patches(OPTIONS.grid.height, OPTIONS.grid.width).pieces]
    assert seen.weights is not None
    shown = [
        (
            Table(
                [f"taken for {NAMES[int(said[each])]}"],
                names,
                np.asarray(seen.weights[each, None]),
                title=(f"test picture {each}, a {NAMES[int(test.classes[each])]}",),
            ),
            1 - test.pixels[each, 0].numpy(),  # ink on paper
        )
        for each in chosen
    ]
    picture.save(shown, OPTIONS.grid.height, OPTIONS.grid.width, path)
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
    print(f"{len(training):,} pictures to train on, {len(test)} to test; {cores}")
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
