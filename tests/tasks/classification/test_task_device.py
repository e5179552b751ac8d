"""Classifying on another device: nothing is mixed, nothing asked for by the host, and few shapes say the same.

There is no GPU here. Tensors without data ("meta") stand in for its own: torch refuses to mix them with others, and
whoever asks for what they hold is refused.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from regard.core import plan, request
from regard.models.documents import classifier
from regard.models.recurrent import encoder
from regard.tasks.classification.task import ClassificationTask
from regard.text.batches import Batch
from regard.text.documents import IGNORED, DocumentBatch
from regard.text.examples import Example
from regard.training.checkpoint import Progress
from regard.training.updating import _UpdateGraph, tensors
from tests.tasks.classification.test_task import task

ELSEWHERE, CPU, CUDA = torch.device("meta"), torch.device("cpu"), torch.device("cuda")
COUNTS, DEFAULT = "embeddings + convolution + counts", "embeddings + convolution + tfidf"
KINDS = [COUNTS, "attention"]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention by its reference, which asks for nothing either."""
    monkeypatch.setattr(request, "as_autocast", lambda x: x)
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    monkeypatch.setattr(plan, "kernels", lambda request: (plan.Reference(),))


@pytest.mark.parametrize("states", [DEFAULT, *KINDS])
@pytest.mark.parametrize("few", [True, False])
@pytest.mark.usefixtures("elsewhere")
def test_an_update_stays_on_its_device(states: str, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClassificationTask, "can_capture", lambda *_: few)
    given = task(model__states=states, training__balance=1.0)
    given.model.to(ELSEWHERE)
    for make in given.epoch(0)[:2]:
        batch = make(ELSEWHERE)
        assert {name for name, part in tensors(batch).items() if part.device != ELSEWHERE} == (
            set() if few else {"lengths"}
        )
        assert isinstance(batch.tokens, int)
        loss, _ = given.loss(batch, Progress())
        loss.backward()  # type: ignore[no-untyped-call]
    used = [each for each in given.model.parameters() if each.requires_grad]
    assert all(each.grad is not None and each.grad.device == ELSEWHERE for each in used)


@pytest.mark.parametrize("states", KINDS)
@pytest.mark.usefixtures("elsewhere")
def test_a_text_is_read_on_the_device_of_the_model(states: str) -> None:
    given = task(model__states=states)
    model = given.model.to(ELSEWHERE).eval()
    batch = DocumentBatch.of(given.documents[:3], given.reader.spelling).to(ELSEWHERE)
    result = model(batch, weights=True)
    assert result.logits.device == ELSEWHERE and result.weights is not None
    seen = model.attentions(batch)
    assert (seen is not None) == (states == "attention")


@pytest.mark.parametrize("states", [DEFAULT, *KINDS, "rnn"])
@pytest.mark.parametrize("balance", [0.0, 1.0])
def test_in_few_shapes_the_loss_is_the_same(states: str, balance: float) -> None:
    given = task(model__states=states, training__balance=balance)
    given.model.eval()  # what is left out would be drawn
    rows = [0, 17, 30, 41, 100]
    plain = given._batch(rows, CPU)
    few = plain.in_few_shapes()
    assert few.shape != plain.shape and few.tokens == plain.tokens
    assert given.folds is None or few.fold is not None
    if given.folds is not None and few.fold is not None:
        few = replace(few, ratios=given.folds.ratios(few.fold, few.source))
    results = []
    used = [each for each in given.model.parameters() if each.requires_grad]
    for batch in (plain, few):
        loss, report = given.loss(batch, Progress())
        results.append((report, *torch.autograd.grad(loss, used)))
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-6)


def test_few_shapes_are_few() -> None:
    given = task()
    batches = [make(CPU) for number in range(3) for make in given.epoch(number)]
    shapes = {batch.in_few_shapes().shape for batch in batches}
    assert len(shapes) < len({batch.shape for batch in batches}) / 2
    few = batches[0].in_few_shapes()
    assert few.labels is not None and (few.labels[len(batches[0].source) :] == IGNORED).all()
    assert few.in_few_shapes().shape == few.shape


def test_what_a_gpu_may_record(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (classifier, encoder):
        monkeypatch.setattr(module, "why_no_triton", lambda device: None if device.type == "cuda" else "not on a GPU")
    for states in (DEFAULT, *KINDS, "rnn"):
        assert task(model__states=states).can_capture(CUDA) and not task(model__states=states).can_capture(CPU)
    assert not task(model__hierarchical=True).can_capture(CUDA)
    assert not task(model__states="rnn + embeddings", model__layers=2).can_capture(CUDA)
    assert not task(model__states="attention", encoder__pattern="window(2)").can_capture(CUDA)


def test_a_recording_is_given_all_that_differs() -> None:
    given = task(model__states=COUNTS)
    one, other = (given._batch(rows, CPU) for rows in ([0, 17, 30, 41], [1, 18, 31, 42]))
    remaining = replace(one, **{name: part.clone() for name, part in tensors(one).items()})
    assert set(tensors(remaining)) == {
        "source", "lengths", "ngrams", "word_indices", "sentences", "labels", "fold", "ratios",
    }  # fmt: skip
    assert not torch.equal(remaining.source, other.source) and one.source.shape == other.source.shape
    remaining, other = remaining.in_few_shapes(), other.in_few_shapes()
    remaining, other = replace(remaining, ratios=None), replace(other, ratios=None)
    replayed = []
    graph = SimpleNamespace(replay=lambda: replayed.append(1))
    _UpdateGraph(graph, remaining, torch.zeros(())).replay(other)  # type: ignore[arg-type]
    assert replayed == [1]
    for name, part in tensors(remaining).items():
        assert torch.equal(part, tensors(other)[name])


def test_of_pairs_too() -> None:
    few = Batch.in_few_shapes([Example([5, 6], [7])])
    assert set(tensors(few)) == {"source", "lengths", "target", "expected"}
