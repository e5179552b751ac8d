"""Captions of drawn shapes: "a red circle above a blue square".

    python examples/captions.py --out captions.html

Draws pictures with numpy, trains the decoder of a Transformer on an encoder of patches by the same loop that trains
translators, captions pictures it has not seen, with things it never saw together, by the same beam search, and lays
what each word looked at over the picture. The trace is one like any other: `--out captions.json` keeps it for
`regard look`. An .svg shows the first picture.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import regard
from regard import CaptionedImages, Captioner
from regard.look import picture
from regard.look.table import table
from regard.look.trace_files import write

SIDE, PATCH = 32, 4
COLOURS = {
    "red": (213, 40, 40),
    "blue": (40, 90, 220),
    "green": (40, 150, 70),
    "yellow": (240, 200, 40),
    "purple": (140, 60, 170),
    "black": (30, 30, 30),
}
SHAPES = ("circle", "square", "triangle")
Thing = tuple[str, str]
"""(colour, shape)"""
Pixels = np.ndarray[Any, np.dtype[np.float32]]


def inside(shape: str, x: Pixels, y: Pixels, radius: float) -> Pixels:
    """Which places, counted from its middle, a shape covers."""
    if shape == "circle":
        return np.asarray(x**2 + y**2 <= radius**2)
    if shape == "square":
        return np.asarray(np.maximum(abs(x), abs(y)) <= radius * 0.88)
    return np.asarray((abs(y) <= radius) & (abs(x) <= (y + radius) * 0.55))  # its tip is above


def draw(things: list[tuple[Thing, tuple[float, float], float]]) -> Pixels:
    """[SIDE, SIDE, 3] from 0 to 1: (thing, (row, column) of its middle, radius), on paper; drawn 4 times as fine."""
    fine = 4
    rows, columns = (np.mgrid[: SIDE * fine, : SIDE * fine] + 0.5) / fine
    canvas = np.full((SIDE * fine, SIDE * fine, 3), 0.94, np.float32)
    for (colour, shape), (row, column), radius in things:
        canvas[inside(shape, columns - column, rows - row, radius)] = np.array(COLOURS[colour], np.float32) / 255
    return np.asarray(canvas.reshape(SIDE, fine, SIDE, fine, 3).mean((1, 3)), np.float32)


def scene(drawn: np.random.Generator, first: Thing, second: Thing, above: bool) -> Pixels:
    """Two things, the first above the second or left of it, each of its own size and a little out of line."""
    radii = drawn.uniform(4.5, 6.5, 2)
    along = drawn.uniform([7, 21], [11, 25])
    across = drawn.uniform(8, SIDE - 8) + drawn.uniform(-2, 2, 2)
    places = [(a, b) if above else (b, a) for a, b in zip(along, across, strict=True)]
    return draw([(first, places[0], radii[0]), (second, places[1], radii[1])])


def make(count: int, seed: int, unseen: bool) -> CaptionedImages:
    """Pictures with captions; one in ten ways to put two things together is kept for those that are `unseen`."""
    drawn = np.random.default_rng(seed)
    things = [(colour, shape) for colour in COLOURS for shape in SHAPES]
    pixels: list[Pixels] = []
    captions: list[str] = []
    while len(captions) < count:
        one, other, above = *drawn.integers(len(things), size=2), bool(drawn.integers(2))
        if one == other or ((5 * one + 3 * other + above) % 10 == 0) != unseen:
            continue
        (a, b), (c, d) = things[one], things[other]
        captions.append(f"a {a} {b} {'above' if above else 'left of'} a {c} {d}")
        pixels.append(scene(drawn, things[one], things[other], above))
    return CaptionedImages(torch.from_numpy(np.stack(pixels)).movedim(-1, 1), captions)


def settings(epochs: int) -> dict[str, Any]:
    """Patches do not look at each other, so that each stands for itself alone; the decoder looks at few at a time."""
    return {
        "model.image.patch": PATCH,
        "model.image.width": 96,
        "model.image.layers": 0,
        "model.decoder.width": 96,
        "model.decoder.feedforward": 192,
        "model.decoder.dropout": 0.0,
        "model.decoder.cross.normalizer": "entmax15",
        "training.epochs": epochs,
        "training.batch_sentences": 32,
        "training.validations": epochs,
    }


class Printed:
    def say(self, text: str) -> None:
        print(text, flush=True)

    def advance(self, done: int, total: int | None, text: str) -> None:
        pass

    def status(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, nargs="+", default=[Path("captions.html")], help=".html, .svg or .json")
    parser.add_argument("--pictures", type=int, default=6000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    began = time.monotonic()
    train, dev = make(chosen.pictures, chosen.seed, False), make(300, chosen.seed + 1, True)
    with tempfile.TemporaryDirectory() as folder:
        captioner = regard.train(
            train,
            Path(folder) / "model",
            task="captions",
            dev=dev,
            settings=settings(chosen.epochs),
            seed=chosen.seed,
            screen=Printed(),
        )
    assert isinstance(captioner, Captioner)
    pictures = dev.pixels[:6]
    captions = captioner.captions(pictures)
    for caption, meant in zip(captions, dev.captions, strict=False):
        print(f"{caption.text}   (meant: {meant})")
    side = SIDE // PATCH
    shown = [(table(each.trace), one.movedim(0, -1).numpy()) for each, one in zip(captions, pictures, strict=True)]
    for path in chosen.out:
        if path.suffix == ".json":
            write([caption.trace for caption in captions], path)
        else:
            picture.save(shown if path.suffix == ".html" else shown[:1], side, side, path)
    print(f"{', '.join(map(str, chosen.out))} after {time.monotonic() - began:.0f} seconds")


if __name__ == "__main__":
    main()
