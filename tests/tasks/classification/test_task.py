"""The task of classifying, in the loop that trains everything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.config.recipe_text import from_toml, read_recipe, to_toml
from regard.metrics.classification import score_labels
from regard.models.documents import tfidf as module
from regard.tasks.classification import task as tasks
from regard.tasks.classification.task import ClassificationTask, no_better_than_constant, smoothed_cross_entropy
from regard.text.documents import IGNORED
from regard.text.pairs import Pair
from regard.training.checkpoint import Progress
from tests.training import toy_labels as toy

PAIRS = [Pair(text, label, line) for line, (text, label) in enumerate(toy.TEXTS, 1)]


def task(**settings: object) -> ClassificationTask:
    chosen = toy.TINY | {key.replace("__", "."): value for key, value in settings.items()}
    return ClassificationTask.of(PAIRS, PAIRS[:10], read_recipe("classify", chosen), 1)


def test_an_epoch_holds_every_text_once() -> None:
    given = task()
    for number in range(2):
        batches = [make(torch.device("cpu")) for make in given.epoch(number)]
        assert sum(len(batch.source) for batch in batches) == len(PAIRS)
        labels = torch.cat([batch.labels for batch in batches])
        assert labels.sum() == 60
    assert given.batches_per_epoch() == len(batches)


def test_what_is_fitted_leaves_nothing_open_and_comes_back() -> None:
    recipe = ClassificationTask.of(PAIRS, PAIRS, read_recipe("classify", {"model.neighbours": 64}), 1).recipe
    training = recipe.training
    assert None not in (training.epochs, training.batch_sentences, training.batch_tokens)
    assert from_toml(to_toml(recipe)) == recipe
    assert ClassificationTask.of(PAIRS, PAIRS, recipe, 1).recipe == recipe


def test_the_loss_is_that_of_each_judge() -> None:
    given = task(training__label_smoothing=0.0)
    given.model.eval()
    batch = given.epoch(0)[0](torch.device("cpu"))
    loss, report = given.loss(batch, Progress())
    each = given.model(batch).each.log_softmax(-1)
    chosen = each[:, torch.arange(len(batch.labels)), batch.labels]
    assert torch.allclose(loss, -chosen.mean()) and torch.equal(report, loss.detach())


def test_balance_lets_rare_labels_count_as_much() -> None:
    few = [*PAIRS[:60], *[pair for pair in PAIRS[60:] if pair.target == "good"]]
    chosen = read_recipe("classify", toy.TINY | {"training.balance": 1})
    given = ClassificationTask.of(few, few, chosen, 1)
    counts = torch.tensor([sum(pair.target == label for pair in few) for label in given.labels])
    assert torch.allclose(given.weights * counts, torch.full((2,), len(few) / 2))
    assert torch.equal(ClassificationTask.of(few, few, read_recipe("classify", toy.TINY), 1).weights, torch.ones(2))


@pytest.mark.parametrize("states", ["embeddings + convolution + tfidf", "embeddings + counts", "rnn", "attention"])
def test_it_learns_and_its_attention_finds_the_word(states: str, tmp_path: Path) -> None:
    model = regard.train(
        toy.TEXTS,
        tmp_path / "m",
        task="classify",
        settings=toy.TINY | {"model.states": states, "model.neighbours": 256},
        device="cpu",
    )
    assert model.card["scores"]["accuracy"] >= 95
    assert model.classify("The film is gripping.") == "good"
    assert model.classify(["This book is boring.", "Her play is brilliant."]) == ["bad", "good"]
    log = [json.loads(line) for line in (tmp_path / "m" / "log.jsonl").read_text().splitlines()]
    validations = [entry for entry in log if entry["kind"] == "validation"]
    assert len(validations) == 2
    probes = [[probe["target"]["text"] for probe in entry["probes"]] for entry in validations]
    assert len(probes[0]) == 4 and probes[0] == probes[1]  # of what they should be: the same at every validation


def test_tfidf_is_fitted_to_all_texts_or_to_as_many_as_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = task(model__states="embeddings + tfidf").model.tfidf
    fitted: list[int] = []
    actual = module.TfidfMember.fit

    def recorded(
        member: module.TfidfMember, batches: Any, targets: torch.Tensor, weights: torch.Tensor, further: bool
    ) -> None:
        fitted.append(len(targets))
        actual(member, batches, targets, weights, further)

    monkeypatch.setattr(module.TfidfMember, "fit", recorded)
    words = sum(len(each.pieces) for each in task().documents)
    for limit in (words, words - 1, words // 3):
        monkeypatch.setattr(tasks, "MAX_FITTED_WORDS", limit)
        part = task(model__states="embeddings + tfidf", training__balance=1.0).model.tfidf
        assert torch.equal(part.tfidf.weight, whole.tfidf.weight) == (limit == words)
    assert fitted == [120, 60, 30]


def test_hierarchical_learns_too(tmp_path: Path) -> None:
    settings = toy.TINY | {"model.states": "embeddings", "model.hierarchical": True}
    model = regard.train(toy.TEXTS, tmp_path / "m", task="classify", settings=settings, device="cpu")
    text = "We saw it. The film is gripping. They say so."
    answer = model.answers([text], details=True)[0]
    assert model.card["scores"]["accuracy"] >= 95 and answer.trace is not None
    assert answer.trace.weights.sum() == pytest.approx(1, abs=1e-4)


def test_a_label_of_dev_alone_is_missed(tmp_path: Path) -> None:
    dev = [*toy.TEXTS[:10], ("The film is purple.", "purple")]
    settings = toy.TINY | {"training.epochs": 1}
    model = regard.train(toy.TEXTS, tmp_path / "m", task="classify", dev=dev, settings=settings, device="cpu")
    assert model.card["scores"]["labels"] == ["bad", "good", "purple"]


def test_the_same_seed_gives_the_same_model(tmp_path: Path) -> None:
    models = [
        regard.train(toy.TEXTS, tmp_path / name, task="classify", settings=toy.TINY, device="cpu", precision="fp32")
        for name in ("a", "b")
    ]
    one, other = (model.logits([text for text, _ in toy.TEXTS[:8]]) for model in models)
    assert torch.equal(one, other)


def test_refusals(tmp_path: Path) -> None:
    def refused(why: str, texts: list[tuple[str, str]] = toy.TEXTS, **options: object) -> None:
        with pytest.raises(ValueError, match=why):
            regard.train(texts, tmp_path / "m", **{"task": "classify", "device": "cpu"} | options)  # type: ignore[arg-type]
        assert not (tmp_path / "m").exists()

    refused("expected texts of at least 2 labels, got 1: good", [pair for pair in toy.TEXTS if pair[1] == "good"])
    refused("'rnn' is not for --task classify", recipe="rnn")
    refused("'classify' is not for --task translate", recipe="classify", task="translate")
    refused("reverse, languages and extra are for translating", reverse=True)
    refused("task: expected translate or classify or images or captions, got 'label'", task="label")


def test_a_stopped_run_goes_on_as_if_it_had_not(tmp_path: Path) -> None:
    class Stopping:
        """Presses Ctrl-C at the first validation."""

        def say(self, text: str) -> None:
            if text.startswith("update "):
                raise KeyboardInterrupt

        def advance(self, done: int, total: int | None, text: str, unit: str = "update") -> None:
            pass

        def status(self, text: str) -> None:
            pass

        def close(self) -> None:
            pass

    settings = toy.TINY | {"model.states": "embeddings + counts"}
    options = {"task": "classify", "settings": settings, "device": "cpu", "precision": "fp32"}
    whole = regard.train(toy.TEXTS, tmp_path / "whole", **options)
    with pytest.raises(KeyboardInterrupt):
        regard.train(toy.TEXTS, tmp_path / "parts", screen=Stopping(), **options)
    parts = regard.train(toy.TEXTS, tmp_path / "parts", resume=True, **options)
    assert torch.equal(whole.logits(["The film is gripping."]), parts.logits(["The film is gripping."]))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weights", [None, torch.tensor([0.5, 2.0, 1.0])])
def test_the_loss_is_torchs(smoothing: float, weights: torch.Tensor | None) -> None:
    logits, gold = torch.randn(7, 3, requires_grad=True), torch.tensor([0, 2, IGNORED, 1, 1, 0, IGNORED])
    mine = smoothed_cross_entropy(logits, gold, weights, smoothing)
    right = torch.nn.functional.cross_entropy(logits, gold, weights, ignore_index=IGNORED, label_smoothing=smoothing)
    torch.testing.assert_close(mine, right)
    torch.testing.assert_close(torch.autograd.grad(mine, logits), torch.autograd.grad(right, logits))


def test_no_better_than_a_constant_answer() -> None:
    """An accuracy of 80 % is no false alarm's business, unless 80 % have that label."""
    expected = ["good"] * 8 + ["bad"] * 2

    def constant(message: list[str]) -> bool:
        rows = [[0.9, 0.1] if label == "bad" else [0.1, 0.9] for label in message]
        return no_better_than_constant(score_labels(rows, ["bad", "good"], expected), expected)

    assert constant(["good"] * 10) and constant(["bad"] * 10)
    assert not constant(expected)
    assert not constant(["bad"] * 2 + ["good"] * 6 + ["bad"] * 2), "balanced, it finds the rare label"


def test_batches_are_made_smaller_unless_their_size_was_set() -> None:
    given = ClassificationTask.of(PAIRS * 40, PAIRS, read_recipe("classify"), 1)
    assert 0 < given.smallest_batch_fraction < 1
    small = given.epoch(0, given.smallest_batch_fraction)
    assert len(small) > given.batches_per_epoch() and given.size == len(PAIRS) * 40
    chosen = read_recipe("classify", {"training.batch_sentences": 24})
    assert ClassificationTask.of(PAIRS, PAIRS, chosen, 1).smallest_batch_fraction == 1
