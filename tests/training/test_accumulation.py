"""An update of several batches is that of one batch with all of their examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.config.recipe_text import read_recipe
from regard.runtime.distributed import ALONE, World
from regard.tasks.classification.task import ClassificationTask
from regard.tasks.translation.task import TranslationTask
from regard.text.batches import Batch
from regard.text.examples import Example
from regard.text.pairs import Pair
from regard.training.accumulation import GroupShare, GroupUpdater, shared_out
from regard.training.checkpoint import Progress
from regard.training.task import Task
from regard.training.updating import DivergedError, Updater
from tests.training import toy, toy_labels

CPU = torch.device("cpu")
PARTS = (range(3), range(3, 4), range(4, 12))  # rows of unequal batches


def translation(recipe: str = "rnn", **settings: Any) -> TranslationTask:
    given = {key: value for key, value in toy.RECIPES[recipe].items() if key != "training.average"}
    return TranslationTask.of(toy.pairs(), toy.pairs(8), read_recipe(recipe, given | settings), seed=1)


def classification(**settings: Any) -> ClassificationTask:
    recipe = read_recipe("classify", toy_labels.TINY | toy_labels.NOTHING_DRAWN | settings)
    train = [Pair(text, label, line) for line, (text, label) in enumerate(toy_labels.TEXTS[:90], 1)]
    return ClassificationTask.of(train, train[:10], recipe, seed=1)


def batch_of(task: Task, rows: Sequence[int]) -> Any:
    if isinstance(task, TranslationTask):
        return task._batch(task.examples.plain, rows, CPU)
    assert isinstance(task, ClassificationTask)
    return task._batch(rows, CPU)


def gradients(
    task: Task, parts: Sequence[Sequence[int]], filler: bool = False
) -> tuple[dict[str, Tensor], list[float]]:
    """The gradients of the first update by batches of these rows, and the losses of three such updates."""
    update = GroupUpdater(Updater(task, CPU, "fp32"), task, ALONE)
    share = GroupShare([batch_of(task, rows) for rows in parts], has_filler=filler)
    losses = [float(update(share, Progress()))]
    grads = {name: weight.grad.clone() for name, weight in task.model.named_parameters() if weight.grad is not None}
    return grads, [*losses, *(float(update(share, Progress())) for _ in range(2))]


CASES = {
    "rnn": lambda: translation(),
    "rnn, guided": lambda: translation(**{"training.guided_attention": 2.0}),
    "transformer": lambda: translation("transformer"),
    "classify": lambda: classification(),
    "classify, balanced": lambda: classification(**{"training.balance": 1.0}),
}


@pytest.mark.parametrize("case", CASES)
def test_several_batches_are_as_one(case: str) -> None:
    one, one_losses = gradients(CASES[case](), [range(12)])
    several, losses = gradients(CASES[case](), PARTS)
    assert losses == pytest.approx(one_losses, rel=1e-5) and losses[2] < losses[0]
    assert one.keys() == several.keys() and len(one) > 5
    largest = max(float(gradient.abs().max()) for gradient in one.values())
    for name, gradient in one.items():
        assert torch.allclose(several[name], gradient, rtol=1e-3, atol=1e-5 * largest), name


def test_an_update_of_one_batch_is_that_of_the_updater() -> None:
    task, other = translation(), translation()
    _, losses = gradients(task, [range(12)])
    update, batch = Updater(other, CPU, "fp32"), batch_of(other, range(12))
    assert [float(update(batch, Progress())) for _ in range(3)] == losses
    weights = dict(other.model.named_parameters())
    assert all(torch.equal(weights[name], weight) for name, weight in task.model.named_parameters())


def test_a_filler_counts_nothing() -> None:
    without, losses = gradients(translation(), [range(4)])
    filled, filled_losses = gradients(translation(), [range(4), range(4, 9)], filler=True)
    assert losses == filled_losses and all(torch.equal(filled[name], gradient) for name, gradient in without.items())
    batch = batch_of(translation(), range(2))
    assert GroupShare([batch] * 2, has_filler=True).tokens == batch.tokens > 0


@pytest.mark.parametrize("case", ["rnn", "rnn, guided", "transformer"])
def test_a_large_batch_is_computed_in_micro_batches(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The update is the same; no more rows are computed at a time than fit into a micro-batch."""
    whole, losses = gradients(CASES[case](), [range(12)])
    monkeypatch.setattr("regard.tasks.translation.task.MICRO_BATCH", 40)
    task = CASES[case]()
    assert isinstance(task, TranslationTask)
    computed = []
    task.model.register_forward_hook(lambda _model, inputs, _output: computed.append(tuple(inputs[0].shape)))
    parts, part_losses = gradients(task, [range(12)])
    assert part_losses == pytest.approx(losses, rel=1e-5)
    assert len(computed) > 3 and all(rows * longest <= 40 for rows, longest in computed)
    largest = max(float(gradient.abs().max()) for gradient in whole.values())
    for name, gradient in whole.items():
        assert torch.allclose(parts[name], gradient, rtol=1e-3, atol=1e-5 * largest), name


def test_micro_batches_of_a_filler_count_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.tasks.translation.task.MICRO_BATCH", 40)
    without, losses = gradients(translation(), [range(7)])
    filled, filled_losses = gradients(translation(), [range(7), range(4, 12)], filler=True)
    assert losses == filled_losses and all(torch.equal(filled[name], gradient) for name, gradient in without.items())


def test_consistency_training_reads_a_micro_batch_twice() -> None:
    plain, twice = translation(), translation(**{"training.consistency": 1.0})
    batch = Batch.of([Example([5] * 63, [5] * 63)] * 64)  # 64 · 64 tokens
    assert [len(part.source) for part in plain.micro_batches(batch)] == [32] * 2
    assert [len(part.source) for part in twice.micro_batches(batch)] == [16] * 4


def test_the_baseline_of_reinforce_is_one_for_all_batches_of_an_update() -> None:
    """It follows the mean reward of all target tokens, as if they had been one batch."""
    settings = {"model.normalizer": "hard", "model.estimator": "reinforce"}
    task = translation(**settings)
    task.model.eval()  # hard attention takes the argmax: nothing is drawn
    baselines = []
    for parts in ([range(12)], PARTS):
        progress = Progress(baseline=-3.0)
        update = GroupUpdater(Updater(task, CPU, "fp32"), task, ALONE)
        update._updater.set_learning_rate(0.0)
        update(GroupShare([batch_of(task, rows) for rows in parts]), progress)
        baselines.append(progress.baseline)
    assert baselines[0] == pytest.approx(baselines[1], rel=1e-5) and baselines[0] != -3.0


def test_a_loss_of_nan_changes_no_weight() -> None:
    task = translation()
    with torch.no_grad():
        task.model.output.weight[0, 0] = torch.nan
    before = {name: weight.detach().clone() for name, weight in task.model.named_parameters()}
    update = GroupUpdater(Updater(task, CPU, "fp32"), task, ALONE)
    with pytest.raises(DivergedError):
        update(GroupShare([batch_of(task, rows) for rows in PARTS]), Progress())
    for name, weight in task.model.named_parameters():
        assert torch.equal(weight.nan_to_num(), before[name].nan_to_num())


@pytest.mark.parametrize(("batches", "size"), [(4, 2), (3, 2), (5, 4), (1, 4), (8, 4), (6, 1)])
def test_a_group_is_shared_out(batches: int, size: int) -> None:
    """All processes compute as many batches; each batch counts in one of them."""
    shares = [shared_out(list(range(batches)), World(rank, size, connected=True)) for rank in range(size)]
    assert len({len(own) for own, _ in shares}) == 1
    counted = [batch for own, has_filler in shares for batch in (own[:-1] if has_filler else own)]
    assert sorted(counted) == list(range(batches))


def test_accumulate_is_a_whole_number_from_one_on() -> None:
    with pytest.raises(ValueError, match="training: accumulate: expected a whole number ≥ 1, got 0"):
        replace(read_recipe("rnn").training, accumulate=0)
