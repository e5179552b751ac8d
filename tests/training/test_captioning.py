"""Captions: the same loop, search and trace as translation, from pictures."""

import numpy as np
import pytest
import torch

from regard.captioner import Captioner
from regard.look.table import table
from regard.look.trace import Trace
from regard.models.image import PictureOptions
from regard.models.layers import Looking
from regard.models.transformer import TransformerOptions
from regard.search.walk import greedy
from regard.text.vocabulary import START
from regard.training.captioning import Captioned, Captioning, lengths
from regard.training.direct import train_task
from regard.training.recipe import Recipe, TrainingRecipe, VocabularyRecipe

WORDS = {"top left": (0, 0), "top right": (0, 1), "bottom left": (1, 0), "bottom right": (1, 1)}
OPTIONS = PictureOptions(
    8,
    8,
    1,
    2,
    width=32,
    heads=2,
    feedforward=32,
    layers=1,
    dropout=0.0,
    attention=Looking(pattern="grid(4, 4).window(1)"),
)
RECIPE = Recipe(
    name="captions",
    vocabulary=VocabularyRecipe(kind="words"),
    model=TransformerOptions(width=32, heads=2, feedforward=32, decoder_layers=1, dropout=0.0),
    training=TrainingRecipe(
        epochs=25, batch_sentences=16, learning_rate=0.005, warmup=10, average=0.5, validations=2, patience=0
    ),
)


def spots(count: int, seed: int) -> Captioned:
    """A bright spot of 2 × 2 pixels, and in which quarter it is."""
    drawn = np.random.default_rng(seed)
    pixels, captions = np.zeros((count, 1, 8, 8), np.float32), []
    for picture in pixels:
        name = list(WORDS)[drawn.integers(4)]
        row, column = (4 * half + 2 * drawn.integers(2) for half in WORDS[name])
        picture[0, row : row + 2, column : column + 2] = 2
        captions.append(name)
    return Captioned(torch.from_numpy(pixels), captions)


@pytest.fixture(scope="module")
def trained() -> tuple[Captioning, Captioner]:
    task = Captioning.of(spots(240, 0), spots(40, 1), OPTIONS, RECIPE, 1)
    assert train_task(task, device="cpu", precision="fp32") == 100.0
    return task, Captioner.of(task)


def test_captions_what_it_has_not_seen(trained: tuple[Captioning, Captioner]) -> None:
    task, captioner = trained
    found = captioner.captions(task.held.pixels)
    assert [each.text for each in found] == list(task.held.captions)


def test_words_look_at_the_spot(trained: tuple[Captioning, Captioner]) -> None:
    """The overlay shows where the model found what it says: of all patches the brightest gets most."""
    task, captioner = trained
    hits = 0
    for caption, picture in zip(captioner.captions(task.held.pixels), task.held.pixels, strict=True):
        spot = int(torch.nn.functional.max_pool2d(picture, 2).argmax())
        hits += int(caption.trace.weights.mean(0).argmax()) == spot
    assert hits >= 30


def test_trace_is_that_of_teacher_forcing(trained: tuple[Captioning, Captioner]) -> None:
    task, captioner = trained
    picture = task.held.pixels[:1]
    (caption,) = captioner.captions(picture)
    tokens = [START, *caption.trace.target.tokens[:-1]]
    with torch.inference_mode():
        seen = captioner.model.attentions(picture, lengths(picture, OPTIONS), torch.tensor([tokens]))
    cross = next(each for each in caption.trace.attentions if each.name == "cross")
    np.testing.assert_allclose(cross.weights, seen["cross"][0], atol=1e-5)
    assert {each.name for each in caption.trace.attentions} == {"cross", "encoder", "decoder"}
    assert table(Trace.from_dict(caption.trace.as_dict())).columns[:5] == ("a1", "b1", "c1", "d1", "a2")
    assert len(caption.trace.steps) == len(caption.trace.target.pieces)
    assert caption.trace.candidates[0].text == caption.text


def test_greedy_is_a_beam_of_one(trained: tuple[Captioning, Captioner]) -> None:
    task, captioner = trained
    pictures = task.held.pixels[:8]
    found = greedy(captioner.model, pictures, lengths(pictures, OPTIONS), captioner.limit)
    said = [captioner.vocabulary.decode(each.tokens) for each in found]
    assert said == [each.text for each in captioner.captions(pictures, width=1)]


def test_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="captions: expected one for each of 2 pictures, got 1"):
        Captioned(torch.zeros(2, 1, 8, 8), ["top left"])
    with pytest.raises(ValueError, match="recipe: expected a Transformer of width 32"):
        Captioning.of(spots(4, 0), spots(4, 0), OPTIONS, Recipe(), 1)
