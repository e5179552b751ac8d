"""The task of classifying images, by the loop that trains translators."""

from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard import ImageClassifier, Images
from regard.config.recipe_text import read_recipe
from regard.tasks.images.task import ImageTask, shifted
from regard.training.loop import Loop, Machine
from regard.training.progress import Reporter, Silent

SETTINGS = {
    "model.patch": 4,
    "model.width": 16,
    "model.heads": 2,
    "model.feedforward": 16,
    "model.layers": 1,
    "model.dropout": 0.0,
    "training.epochs": 12,
    "training.batch_sentences": 16,
    "training.learning_rate": 0.01,
    "training.warmup": 5,
    "training.average": 0.5,
    "training.validations": 2,
    "training.weight_decay": 0.0,
}


def corners(count: int, seed: int) -> Images:
    """A bright patch in one of four corners says the class."""
    generator = torch.Generator().manual_seed(seed)
    classes = torch.randint(4, (count,), generator=generator)
    pixels = 0.1 * torch.rand(count, 1, 8, 8, generator=generator)
    for image, corner in zip(pixels, classes.tolist(), strict=True):
        row, column = divmod(corner, 2)
        image[0, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += 1
    return Images(pixels, classes, ["a", "b", "c", "d"])


def task() -> ImageTask:
    return ImageTask.of(corners(160, 0), corners(40, 1), read_recipe("images", SETTINGS), 1)


def run(given: ImageTask, folder: Path) -> Loop:
    (folder / "training").mkdir(parents=True)
    loop = Loop(given, folder, Machine(torch.device("cpu"), "fp32"), Reporter(folder / "log.jsonl", Silent()), None)
    loop.run()
    return loop


def test_learns_and_is_a_pure_function_of_its_seed(tmp_path: Path) -> None:
    loops = [run(task(), tmp_path / name) for name in ("one", "two")]
    assert loops[0].progress.best == 100.0
    for one, other in zip(loops[0].average.values(), loops[1].average.values(), strict=True):
        assert torch.equal(one, other)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images") / "model"
    regard.train(corners(160, 0), folder, task="images", settings=SETTINGS, device="cpu", precision="fp32")
    return folder


def test_a_model_comes_back_from_its_folder_and_shows_what_decided(trained: Path) -> None:
    model, unseen = regard.load(trained, "cpu"), corners(40, 2)
    assert isinstance(model, ImageClassifier)
    assert model.card["task"] == "images" and model.card["data"]["dev_pairs"] == 32  # a fifth was set aside
    assert model.classify(unseen.pixels) == [unseen.names[number] for number in unseen.classes.tolist()]
    for answer, number in zip(model.answers(unseen.pixels), unseen.classes.tolist(), strict=True):
        assert answer.label == unseen.names[number] and sum(answer.probabilities.values()) == pytest.approx(1)
        assert [each.name for each in answer.trace.attentions] == ["pool", "encoder"]
        assert answer.trace.weights.shape == (1, 4)
        assert [span.text for span in answer.trace.source.pieces] == ["a1", "b1", "a2", "b2"]
        np.testing.assert_allclose(answer.trace.weights.sum(), 1, atol=1e-5)


def test_a_run_is_resumed(trained: Path, tmp_path: Path) -> None:
    few = {**SETTINGS, "training.epochs": 2}
    options = {"task": "images", "settings": few, "device": "cpu", "precision": "fp32"}
    model = regard.train(corners(80, 0), tmp_path / "m", dev=corners(20, 1), **options)  # type: ignore[arg-type]
    again = regard.train(corners(80, 0), tmp_path / "m", dev=corners(20, 1), resume=True, **options)  # type: ignore[arg-type]
    assert isinstance(model, ImageClassifier) and isinstance(again, ImageClassifier)
    assert torch.equal(model.logits(corners(8, 3).pixels), again.logits(corners(8, 3).pixels))
    with pytest.raises(ValueError, match="begun with other data"):
        regard.train(corners(80, 5), tmp_path / "m", dev=corners(20, 1), resume=True, **options)  # type: ignore[arg-type]


def test_epochs_hold_every_image_once_and_differ() -> None:
    given = task()
    cpu = torch.device("cpu")
    epochs = [torch.cat([make(cpu).pixels for make in given.epoch(number)]) for number in (0, 0, 1)]
    assert len(given.epoch(0)) == given.batches_per_epoch() == 10
    assert torch.equal(epochs[0], epochs[1]) and not torch.equal(epochs[0], epochs[2])
    assert torch.equal(epochs[0].sum((1, 2, 3)).sort().values, given.train.pixels.sum((1, 2, 3)).sort().values)


def test_shifted_images() -> None:
    pixels = torch.arange(1.0, 13.0).view(1, 1, 3, 4).repeat(3, 1, 1, 1)
    moved = shifted(pixels, torch.tensor([[0, 0], [1, 0], [0, -2]]))
    assert torch.equal(moved[0], pixels[0])
    assert moved[1, 0].tolist() == [[0, 0, 0, 0], [1, 2, 3, 4], [5, 6, 7, 8]]
    assert moved[2, 0].tolist() == [[3, 4, 0, 0], [7, 8, 0, 0], [11, 12, 0, 0]]


def test_says_what_is_wrong(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"pixels: expected .*\[N, C, height, width\], got torch.uint8"):
        Images(torch.zeros(2, 1, 8, 8, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"classes: expected int64 \[2\], got torch.int64 \[3\]"):
        Images(torch.zeros(2, 1, 8, 8), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ValueError, match="classes: expected numbers from 0 to 1"):
        Images(torch.zeros(2, 1, 8, 8), torch.tensor([0, 2]), ["a", "b"])
    with pytest.raises(ValueError, match=r"data: expected regard\.Images, got str"):
        regard.train("pairs.tsv", tmp_path / "m", task="images")
    settings = {**SETTINGS, "model.image_height": 16}
    with pytest.raises(ValueError, match=r"model\.image_height: expected 8, as the images have, got 16"):
        regard.train(corners(40, 0), tmp_path / "m", task="images", settings=settings, device="cpu")
    with pytest.raises(ValueError, match="patch: expected a divisor of image_height = 8, got 3"):
        regard.train(corners(40, 0), tmp_path / "m", task="images", settings={"model.patch": 3}, device="cpu")
    with pytest.raises(ValueError, match="'rnn' is not for --task images"):
        regard.train(corners(40, 0), tmp_path / "m", task="images", recipe="rnn")
    with pytest.raises(ValueError, match="expected none of them with --task images"):
        regard.train(corners(40, 0), tmp_path / "m", task="images", reverse=True)
