"""The task of classifying pictures, by the loop that trains translators."""

from pathlib import Path

import pytest
import torch

from regard.models.image import PictureOptions
from regard.training.loop import Loop, Machine
from regard.training.picturing import Pictures, Picturing, classify, shifted
from regard.training.progress import Reporter, Silent
from regard.training.recipe import TrainingRecipe

OPTIONS = PictureOptions(8, 8, 1, patch=4, width=16, heads=2, feedforward=16, layers=1, dropout=0.0)
TRAINING = TrainingRecipe(
    epochs=12, batch_sentences=16, learning_rate=0.01, warmup=5, average=0.5, validations=2, patience=0
)


def corners(count: int, seed: int) -> Pictures:
    """A bright patch in one of four corners says the class."""
    drawn = torch.Generator().manual_seed(seed)
    classes = torch.randint(4, (count,), generator=drawn)
    pixels = 0.1 * torch.rand(count, 1, 8, 8, generator=drawn)
    for picture, corner in zip(pixels, classes.tolist(), strict=True):
        row, column = divmod(corner, 2)
        picture[0, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += 1
    return Pictures(pixels, classes)


def task(**changes: int) -> Picturing:
    return Picturing.of(corners(160, 0), corners(40, 1), ["a", "b", "c", "d"], OPTIONS, TRAINING, 1, **changes)


def run(given: Picturing, folder: Path) -> Loop:
    (folder / "training").mkdir(parents=True)
    loop = Loop(given, folder, Machine(torch.device("cpu"), "fp32"), Reporter(folder / "log.jsonl", Silent()), None)
    loop.run()
    return loop


def test_learns_and_is_a_pure_function_of_its_seed(tmp_path: Path) -> None:
    loops = [run(task(), tmp_path / name) for name in ("one", "two")]
    assert loops[0].progress.best == 100.0
    for one, other in zip(loops[0].average.values(), loops[1].average.values(), strict=True):
        assert torch.equal(one, other)


def test_epochs_hold_every_picture_once_and_differ() -> None:
    given = task()
    cpu = torch.device("cpu")
    epochs = [torch.cat([make(cpu).pixels for make in given.epoch(number)]) for number in (0, 0, 1)]
    assert len(given.epoch(0)) == given.updates() == 10
    assert torch.equal(epochs[0], epochs[1]) and not torch.equal(epochs[0], epochs[2])
    assert torch.equal(epochs[0].sum((1, 2, 3)).sort().values, given.train.pixels.sum((1, 2, 3)).sort().values)


def test_shifted_pictures() -> None:
    pixels = torch.arange(1.0, 13.0).view(1, 1, 3, 4).repeat(3, 1, 1, 1)
    moved = shifted(pixels, torch.tensor([[0, 0], [1, 0], [0, -2]]))
    assert torch.equal(moved[0], pixels[0])
    assert moved[1, 0].tolist() == [[0, 0, 0, 0], [1, 2, 3, 4], [5, 6, 7, 8]]
    assert moved[2, 0].tolist() == [[3, 4, 0, 0], [7, 8, 0, 0], [11, 12, 0, 0]]


def test_classify_leaves_the_model_in_training() -> None:
    given = task()
    assert classify(given.model, given.held.pixels).shape == (40,) and given.model.training


def test_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"pixels: expected .*\[N, C, height, breadth\], got torch.uint8"):
        Pictures(torch.zeros(2, 1, 8, 8, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"classes: expected int64 \[2\], got torch.int64 \[3\]"):
        Pictures(torch.zeros(2, 1, 8, 8), torch.zeros(3, dtype=torch.int64))
