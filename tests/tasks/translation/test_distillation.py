"""Word-level distillation: the teachers' distribution, the loss of a student, and runs that are resumed or repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.config.recipe_text import read_recipe
from regard.models.ensemble import EnsembleModel
from regard.search.hypothesis import LengthLimit
from regard.tasks.translation.distillation import Teacher
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.task import TranslationTask
from regard.text.batches import Batch
from regard.training.checkpoint import Progress
from tests.training import toy

SOURCES = ["Rahul sees a mango.", "The girl buys some water."]


@pytest.fixture(scope="module")
def teachers(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders of two trained RNNs of the toy language."""
    folder = tmp_path_factory.mktemp("teachers")
    toy.write_tsv(folder / "pairs.tsv")
    settings = toy.LEARNS | {"training.epochs": 15}
    for seed in (1, 2):
        regard.train(folder / "pairs.tsv", folder / str(seed), settings=settings, seed=seed, device="cpu")
    return [folder / "1", folder / "2"]


def ensemble(folders: list[Path]) -> Translator:
    first, *others = (regard.load(folder, "cpu", "fp32") for folder in folders)
    assert isinstance(first, Translator)
    return first.ensemble(*others) if others else first


def student(teacher: Teacher, **settings: Any) -> TranslationTask:
    values = toy.LEARNS | {"training.consistency": 0.0} | settings
    return TranslationTask.of(toy.pairs(), toy.pairs(8), read_recipe("rnn", values), 1, teacher=teacher)


def train(folders: list[Path], out: Path, **options: Any) -> Translator:
    given: dict[str, Any] = {"settings": toy.TINY, "device": "cpu", "teachers": folders} | options
    translator = regard.train(folders[0].parent / "pairs.tsv", out, **given)
    assert isinstance(translator, Translator)
    return translator


@pytest.mark.parametrize("make", [Batch.of, Batch.in_few_shapes])
@pytest.mark.parametrize("count", [1, 2])
def test_the_distribution_is_that_of_search(teachers: list[Path], count: int, make: Any) -> None:
    """For the first token of each sentence, it is what the first step of the ensemble's search predicts."""
    translator = ensemble(teachers[:count])
    teacher = Teacher.of(translator)
    batch = make(student(teacher).examples.plain)
    single = EnsembleModel([translator.model]) if count == 1 else translator.model
    state = single.start(batch.source, batch.lengths)
    logits, _, _ = single.step(state, batch.target[:, :1])
    expected = torch.softmax(logits[:, 0], -1)
    rows = torch.zeros_like(batch.expected)
    rows[:, 0] = 1
    first = batch.real_tokens(rows).bool()
    real = (batch.expected[:, 0] != 0)[: len(expected)]
    found = teacher.probabilities(batch)
    torch.testing.assert_close(found[first][real], expected[real], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(found.sum(-1), torch.ones(len(found)))


def test_a_student_equal_to_its_teacher_has_nothing_to_learn(teachers: list[Path]) -> None:
    teacher = Teacher.of(ensemble(teachers[:1]))
    for weight, learns in ((1.0, False), (0.5, True)):
        task = student(teacher, **{"training.distillation": weight})
        task.model.load_state_dict(teacher.model.models[0].state_dict())
        loss, _ = task.loss(Batch.of(task.examples.plain), Progress())
        gradients = torch.autograd.grad(loss, list(task.model.parameters()))
        assert (max(float(gradient.abs().max()) for gradient in gradients) > 1e-4) is learns


def test_teachers_get_no_gradient_and_keep_their_dropout_off(teachers: list[Path]) -> None:
    task = student(Teacher.of(ensemble(teachers)))
    task.place_on(torch.device("cpu")).train()
    assert task.teacher is not None and not task.teacher.model.training
    task.loss(Batch.of(task.examples.plain), Progress())[0].backward()  # type: ignore[no-untyped-call]
    assert all(weight.grad is None for weight in task.teacher.model.parameters())
    names = dict(task.model.named_parameters())
    assert not any(weight is taught for weight in names.values() for taught in task.teacher.model.parameters())


def test_consistency_training_reads_the_teacher_once(teachers: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = Teacher.probabilities

    def counted(self: Teacher, batch: Batch) -> torch.Tensor:
        read.append(len(batch.source))
        return original(self, batch)

    monkeypatch.setattr(Teacher, "probabilities", counted)
    teacher, losses = Teacher.of(ensemble(teachers)), []
    for consistency in (0.0, 5.0):
        settings = {"training.consistency": consistency, "model.dropout": 0.0}
        task = student(teacher, **settings)
        batch = Batch.of(task.examples.plain)
        losses.append(task.loss(batch, Progress())[0])
    assert read == [len(batch.source)] * 2
    torch.testing.assert_close(*losses)


def test_a_student_has_the_vocabularies_of_its_teachers(teachers: list[Path], tmp_path: Path) -> None:
    """Also where its own pairs would give others."""
    few = toy.PAIRS[:40]
    ours = train(teachers, tmp_path / "m", dev=teachers[0].parent / "pairs.tsv")
    theirs = ensemble(teachers[:1])
    assert ours.vocabularies.source.to_json() == theirs.vocabularies.source.to_json()
    fewer = regard.train(few, tmp_path / "n", settings=toy.TINY, device="cpu", teachers=teachers)
    assert fewer.vocabularies.target.to_json() == theirs.vocabularies.target.to_json()
    assert fewer.recipe.vocabulary == theirs.recipe.vocabulary
    assert isinstance(fewer.limit, LengthLimit) and fewer.translate(SOURCES) is not None


def test_a_run_is_resumed_with_its_teachers_only(teachers: list[Path], tmp_path: Path) -> None:
    whole = train(teachers, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(teachers, tmp_path / "m", screen=toy.Watcher(interrupt_at=3))
    for others in (teachers[:1], teachers[::-1], []):
        with pytest.raises(ValueError, match="begun with other teachers"):
            regard.train(
                teachers[0].parent / "pairs.tsv", tmp_path / "m", settings=toy.TINY, teachers=others, resume=True
            )
    resumed = train(teachers, tmp_path / "m", resume=True)
    assert resumed.card["scores"] == whole.card["scores"]
    assert toy.differing(toy.weights(tmp_path / "m"), toy.weights(tmp_path / "whole")) == []


def test_it_is_repeated_from_its_card(teachers: list[Path], tmp_path: Path) -> None:
    train(teachers, tmp_path / "m")
    screen = toy.Watcher()
    regard.train_from_card(tmp_path / "m", tmp_path / "n", screen=screen)
    assert "bit for bit" in screen.text
    with pytest.raises(ValueError, match="trained on other teachers"):
        regard.train_from_card(tmp_path / "m", tmp_path / "o", teachers=teachers[:1])


def test_one_teacher_is_named_by_its_path(teachers: list[Path], tmp_path: Path) -> None:
    given: dict[str, Any] = {"settings": toy.TINY, "device": "cpu"}
    ours = regard.train(teachers[0].parent / "pairs.tsv", tmp_path / "m", teachers=str(teachers[0]), **given)
    theirs = train(teachers[:1], tmp_path / "n")
    assert ours.card["weights_sha256"] == theirs.card["weights_sha256"]


def test_what_is_refused(teachers: list[Path], tmp_path: Path) -> None:
    plain = regard.train(toy.PAIRS[:40], tmp_path / "other", settings=toy.TINY, device="cpu")
    assert isinstance(plain, Translator)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"teachers": [tmp_path / "nowhere"]}, "nowhere"),
        ({"teachers": [teachers[0], tmp_path / "other"]}, "expected the same vocabularies"),
        ({"teachers": [teachers[0], teachers[0]]}, "expected different models"),
        ({"settings": toy.TINY | {"vocabulary.size": 150}}, "vocabulary.size: expected 200, as a teacher has it"),
        ({"settings": toy.TINY | {"training.distillation": 1.5}}, r"distillation: expected a fraction in \[0, 1\]"),
        ({"task": "classify"}, "teachers are for translating"),
    ]
    for options, message in cases:
        with pytest.raises(ValueError, match=message):
            train(teachers, tmp_path / "m", **options)
    assert not (tmp_path / "m").exists()


def test_without_weight_the_teachers_change_nothing(teachers: list[Path], tmp_path: Path) -> None:
    settings = toy.TINY | {"training.distillation": 0.0}
    train(teachers, tmp_path / "m", settings=settings)
    regard.train(teachers[0].parent / "pairs.tsv", tmp_path / "n", settings=settings, device="cpu")
    assert toy.differing(toy.weights(tmp_path / "m"), toy.weights(tmp_path / "n")) == []


def test_masked_inputs_are_those_that_the_teacher_reads(teachers: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without consistency training, teacher and student see the same masks."""
    seen: list[torch.Tensor] = []
    original = Teacher.probabilities

    def watched(self: Teacher, batch: Batch) -> torch.Tensor:
        seen.append(batch.source)
        return original(self, batch)

    monkeypatch.setattr(Teacher, "probabilities", watched)
    task = student(Teacher.of(ensemble(teachers)), **{"training.masked": 0.5})
    batch = Batch.of(task.examples.plain)
    task.loss(batch, Progress())
    assert (seen[0] != batch.source).any()
