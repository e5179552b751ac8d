"""What models are chosen by."""

from __future__ import annotations

import pytest
import torch

from regard.config.recipe_text import read_recipe
from regard.tasks.translation.task import TranslationTask
from regard.tasks.translation.validation import ValidationInputs, choosing_score, dev_loss
from regard.text.batches import Batch
from regard.text.pairs import Pair
from regard.training.checkpoint import Progress

CPU = torch.device("cpu")
TEXTS = [("a b c", "A B C D E"), ("b", "B"), ("c a c a c", "C A"), ("d", "D D D"), ("a d", "A D")]
PAIRS = [Pair(*texts, line) for line, texts in enumerate(TEXTS, 1)]


def task(name: str) -> TranslationTask:
    settings = {"model.dropout": 0.0, "training.segmentation_dropout": 0.0, "training.label_smoothing": 0.0}
    return TranslationTask.of(PAIRS, PAIRS, read_recipe(name, settings), 1)


def test_output_that_does_not_depend_on_the_source_never_wins() -> None:
    assert choosing_score(25.0, 25.0, 100) == choosing_score(5.0, 5.5, 100) == choosing_score(8.0, 6.0, 100) == 0
    assert choosing_score(30.0, 10.0, 100) == 20.0
    assert choosing_score(30.0, 30.0, 1) == 30.0, "of one source nothing is known by chance"


@pytest.mark.parametrize("name", ["rnn", "transformer", "article"])
def test_the_loss_on_dev_is_that_of_training_without_what_makes_it_harder(name: str) -> None:
    given = task(name)
    given.model.eval()
    expected = given.loss(Batch.of(given.examples.plain), Progress())[1]
    references = [[pair.target, "X"] for pair in PAIRS]
    inputs = ValidationInputs(given.model, given.vocabularies, given.limit, [pair.source for pair in PAIRS], references)
    before = torch.get_rng_state()
    assert dev_loss(inputs, CPU) == pytest.approx(float(expected), rel=2e-3)
    assert torch.equal(torch.get_rng_state(), before)


def test_references_longer_than_any_translation_do_not_count() -> None:
    given = task("rnn")
    given.model.eval()
    sources = [pair.source for pair in PAIRS]
    usual = [[pair.target] for pair in PAIRS]
    long = [["A " * 5000], *usual[1:]]
    losses = [
        dev_loss(ValidationInputs(given.model, given.vocabularies, given.limit, sources[first:], known[first:]), CPU)
        for first, known in ((1, usual), (0, long))
    ]
    assert losses[0] == pytest.approx(losses[1])
    assert dev_loss(ValidationInputs(given.model, given.vocabularies, given.limit, sources[:1], long[:1]), CPU) is None
