"""Captions: the same loop, search and trace as translation, from pictures."""

from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard import CaptionedImages, Captioner
from regard.config.recipe_text import read_recipe
from regard.look.table import table
from regard.look.trace import Trace
from regard.models.images.captioner import CaptionerOptions
from regard.search.stepwise import greedy
from regard.tasks.captioning.task import patch_counts
from regard.text.vocabulary import START

WORDS = {"top left": (0, 0), "top right": (0, 1), "bottom left": (1, 0), "bottom right": (1, 1)}
SETTINGS = {
    "model.image.patch": 2,
    "model.image.stem": "linear",
    "model.image.width": 32,
    "model.image.heads": 2,
    "model.image.feedforward": 32,
    "model.image.layers": 1,
    "model.image.dropout": 0.0,
    "model.image.attention.pattern": "grid(4, 4).window(1)",
    "model.decoder.width": 32,
    "model.decoder.heads": 2,
    "model.decoder.feedforward": 32,
    "model.decoder.decoder_layers": 1,
    "model.decoder.dropout": 0.0,
    "training.epochs": 25,
    "training.batch_sentences": 16,
    "training.learning_rate": 0.005,
    "training.warmup": 10,
    "training.average": 0.5,
    "training.validations": 2,
    "training.label_smoothing": 0.1,
}
DEV = 40


def spots(count: int, seed: int) -> CaptionedImages:
    """A bright spot of 2 × 2 pixels, and in which quarter it is."""
    drawn = np.random.default_rng(seed)
    pixels, captions = np.zeros((count, 1, 8, 8), np.float32), []
    for picture in pixels:
        name = list(WORDS)[drawn.integers(4)]
        row, column = (4 * half + 2 * drawn.integers(2) for half in WORDS[name])
        picture[0, row : row + 2, column : column + 2] = 2
        captions.append(name)
    return CaptionedImages(torch.from_numpy(pixels), captions)


@pytest.fixture(scope="module")
def captioner(tmp_path_factory: pytest.TempPathFactory) -> Captioner:
    folder = tmp_path_factory.mktemp("captions") / "model"
    options = {"task": "captions", "settings": SETTINGS, "device": "cpu", "precision": "fp32"}
    regard.train(spots(240, 0), folder, dev=spots(DEV, 1), **options)  # type: ignore[arg-type]
    loaded = regard.load(folder, "cpu", "fp32")
    assert isinstance(loaded, Captioner)
    return loaded


def test_captions_what_it_has_not_seen(captioner: Captioner) -> None:
    unseen = spots(DEV, 1)
    assert captioner.card["task"] == "captions" and captioner.card["scores"]["exact"] == 100
    assert [each.text for each in captioner.captions(unseen.pixels)] == list(unseen.captions)


def test_words_look_at_the_spot(captioner: Captioner) -> None:
    """The overlay shows where the model found what it says: of all patches the brightest gets most."""
    hits, pixels = 0, spots(DEV, 1).pixels
    for caption, image in zip(captioner.captions(pixels), pixels, strict=True):
        spot = int(torch.nn.functional.max_pool2d(image, 2).argmax())
        hits += int(caption.trace.weights.mean(0).argmax()) == spot
    assert hits >= 30


def test_trace_is_that_of_teacher_forcing(captioner: Captioner) -> None:
    image = spots(DEV, 1).pixels[:1]
    (caption,) = captioner.captions(image)
    assert isinstance(captioner.recipe.model, CaptionerOptions)
    counts = patch_counts(image, captioner.recipe.model.image)
    tokens = [START, *caption.trace.target.tokens[:-1]]
    with torch.inference_mode():
        seen = captioner.model.attentions(image, counts, torch.tensor([tokens]))
    cross = next(each for each in caption.trace.attentions if each.name == "cross")
    np.testing.assert_allclose(cross.weights, seen["cross"][0], atol=1e-5)
    assert {each.name for each in caption.trace.attentions} == {"cross", "encoder", "decoder"}
    assert table(Trace.from_dict(caption.trace.as_dict())).columns[:5] == ("a1", "b1", "c1", "d1", "a2")
    assert len(caption.trace.steps) == len(caption.trace.target.pieces)
    assert caption.trace.candidates[0].text == caption.text


def test_greedy_is_a_beam_of_one(captioner: Captioner) -> None:
    pixels = spots(DEV, 1).pixels[:8]
    assert isinstance(captioner.recipe.model, CaptionerOptions)
    counts = patch_counts(pixels, captioner.recipe.model.image)
    hypotheses = greedy(captioner.model, pixels, counts, captioner.limit)
    captions = [captioner.vocabulary.decode(each.tokens) for each in hypotheses]
    assert captions == [each.text for each in captioner.captions(pixels, beam=1)]


def test_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="captions: expected one for each of 2 images, got 1"):
        CaptionedImages(torch.zeros(2, 1, 8, 8), ["top left"])
    with pytest.raises(ValueError, match="'rnn' is not for --task captions"):
        regard.train(spots(4, 0), tmp_path / "m", task="captions", recipe="rnn")
    with pytest.raises(ValueError, match=r"model\.decoder\.width: expected 64, as model\.image\.width, got 32"):
        read_recipe("captions", {"model.image.width": 64, "model.decoder.width": 32})
