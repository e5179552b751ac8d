"""Soft labels: what the loss makes of them, which texts they belong to, and that a run resumes with its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional

import regard
from regard.config.recipe_text import read_recipe
from regard.tasks.classification.soft_labels import SoftLabelled, SoftLabels, soft_cross_entropy
from regard.tasks.classification.task import ClassificationTask
from regard.tasks.registry import task_named
from regard.tasks.spec import Given
from regard.text.documents import IGNORED
from regard.training.checkpoint import Progress
from regard.training.progress import Silent
from tests.tasks.classification.test_task import PAIRS
from tests.training import toy_labels as toy

CPU = torch.device("cpu")


def drawn(count: int) -> torch.Tensor:
    return torch.softmax(torch.randn(count, 2, generator=torch.Generator().manual_seed(1)), -1)


def task(soft: SoftLabels, **settings: object) -> ClassificationTask:
    chosen = toy.TINY | {key.replace("__", "."): value for key, value in settings.items()}
    return ClassificationTask.of(PAIRS, PAIRS[:10], read_recipe("classify", chosen), 1, soft)


@pytest.mark.parametrize("weights", [None, torch.tensor([0.5, 2.0, 1.0])])
def test_the_loss_is_torchs(weights: torch.Tensor | None) -> None:
    """With one-hot distributions it is torch's weighted loss, and without weights torch's loss for probabilities."""
    logits, gold = torch.randn(7, 3), torch.tensor([0, 2, IGNORED, 1, 1, 0, IGNORED])
    hard = functional.one_hot(gold.clamp(min=0), 3).float()
    mine = soft_cross_entropy(logits, hard, gold, weights)
    torch.testing.assert_close(mine, functional.cross_entropy(logits, gold, weights, ignore_index=IGNORED))
    soft, real = torch.softmax(torch.randn(7, 3), -1), gold != IGNORED
    if weights is None:
        expected = functional.cross_entropy(logits[real], soft[real])
        torch.testing.assert_close(soft_cross_entropy(logits, soft, gold, None), expected)


def test_the_loss_of_a_batch_mixes_both_labels() -> None:
    soft = SoftLabels(["good", "bad"], drawn(len(PAIRS)))  # in another order than the model's labels
    losses = []
    for fraction in (0.0, 0.3, 1.0):
        given = task(soft, training__soft_labels=fraction, training__label_smoothing=0.0)
        given.model.eval()
        losses.append(given.loss(given._batch([3, 60, 7], CPU), Progress())[0])
    assert torch.allclose(losses[1], 0.7 * losses[0] + 0.3 * losses[2])
    assert given.labels == ["bad", "good"]
    expected = soft.probabilities[[3, 60, 7]].flip(-1)
    log_probs = given.model.trained_logits(given._batch([3, 60, 7], CPU)).log_softmax(-1)
    assert torch.allclose(losses[2], -(expected * log_probs).sum(-1).mean())


@pytest.mark.parametrize("balance", [0.0, 1.0])
def test_in_few_shapes_the_loss_is_the_same(balance: float) -> None:
    given = task(SoftLabels(["bad", "good"], drawn(len(PAIRS))), training__balance=balance)
    given.model.eval()
    plain = given._batch([0, 17, 30, 41, 100], CPU)
    few = plain.in_few_shapes()
    assert few.soft_labels is not None and len(few.soft_labels) == len(few.source) > 5
    one, other = (given.loss(each, Progress())[0] for each in (plain, few))
    torch.testing.assert_close(one, other)


def test_they_teach(tmp_path: Path) -> None:
    """Distributions that contradict all labels are believed if they alone count."""
    wrong = torch.tensor([[float(label == "good"), float(label == "bad")] for _, label in toy.TEXTS])
    data = SoftLabelled(toy.TEXTS, SoftLabels(["bad", "good"], wrong))
    settings = toy.TINY | {"model.states": "embeddings + tfidf", "training.soft_labels": 1.0}
    model = regard.train(
        data, tmp_path / "m", task="classify", dev=toy.TEXTS[:20], settings=settings, device="cpu", precision="fp32"
    )
    assert model.classify(["The film is gripping.", "The film is boring."]) == ["bad", "good"]


def test_a_text_that_is_skipped_takes_its_soft_label_along(tmp_path: Path) -> None:
    spec = task_named("classify")
    texts = [("", "good"), *toy.TEXTS]
    data = SoftLabelled(texts, SoftLabels(["bad", "good"], drawn(len(texts))))
    given = Given(data, toy.TEXTS[:10])
    recipe = read_recipe("classify", toy.TINY)
    read = spec.data(given, recipe, Silent())
    made = spec.task(read, recipe, 1)
    assert torch.allclose(made.soft_labels, data.soft_labels.probabilities[1:])
    other = replace(data, soft_labels=SoftLabels(["bad", "good"], data.soft_labels.probabilities.flip(-1)))
    again = spec.data(replace(given, data=other), recipe, Silent())
    assert again.digest != read.digest


def test_refusals() -> None:
    texts = toy.TEXTS[:4]
    with pytest.raises(ValueError, match=r"expected probabilities \[4, 2\], got \[3, 2\]"):
        SoftLabelled(texts, SoftLabels(["bad", "good"], drawn(3)))
    with pytest.raises(ValueError, match="sum up to 1"):
        SoftLabelled(texts, SoftLabels(["bad", "good"], torch.ones(4, 2)))
    with pytest.raises(ValueError, match="expected a column for each label, got none for good"):
        SoftLabels(["bad", "fair"], drawn(4)).ordered(["bad", "good"])
    with pytest.raises(ValueError, match=r"soft_labels: expected a fraction in \[0, 1\]"):
        read_recipe("classify", {"training.soft_labels": 2})
