"""`train --best` on a toy language: members, synthetic pairs, a student; interrupted, resumed, refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.config.recipe_text import read_recipe
from regard.config.sizes import Budget
from regard.experiments.best import synthetic, translation
from regard.experiments.best import train as training
from regard.experiments.best.train import train_best
from regard.experiments.best.work import WorkFolder
from regard.tasks.classification.predictor import Classifier
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from regard.training.progress import Silent
from tests.training import toy, toy_labels


def run(out: Path, **options: Any) -> Translator:
    given: dict[str, Any] = {"members": 2, "jobs": 1} | options
    translator = train_best(toy.PAIRS, out, settings=toy.TINY, device="cpu", **given)
    assert isinstance(translator, Translator)
    return translator


def test_one_model_remains(tmp_path: Path) -> None:
    screen = toy.Watcher()
    translator = run(tmp_path / "m", screen=screen)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m"]
    card, plain = translator.card, regard.train(toy.PAIRS, tmp_path / "plain", settings=toy.TINY, device="cpu").card
    assert card["parameters"] == plain["parameters"] and card["data"]["sha256"] == plain["data"]["sha256"]
    assert card["data"]["dev_pairs"] == plain["data"]["dev_pairs"]
    assert card["data"]["extra_sha256"] and card["data"]["teachers_sha256"]
    assert set(card["best"]) == {"run", "chosen", "student", "member-1", "member-2"}
    scores = {name: score for name, score in card["best"].items() if name not in ("run", "chosen")}
    assert scores[card["best"]["chosen"]] == max(scores.values()) == card["scores"]["chrf"]
    for part in ("training member-1", "training member-2", "new ones made from them", "training the student", "so far"):
        assert part in screen.text
    screen = toy.Watcher()
    run(tmp_path / "m", resume=True, screen=screen)
    assert "nothing to resume" in screen.text


def test_the_better_of_student_and_members_is_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def choose(self: translation.BestTranslation, names: list[str]) -> None:
        for name, score in (("member-1", 20.0), ("member-2", 30.0)):
            card = json.loads((self.work.path / name / "card.json").read_text())
            card["scores"]["chrf"] = score
            (self.work.path / name / "card.json").write_text(json.dumps(card))
        original(self, names)

    original = translation.BestTranslation._choose
    monkeypatch.setattr(translation.BestTranslation, "_choose", choose)
    run(tmp_path / "m", keep_ensemble=True)
    assert toy.differing(toy.weights(tmp_path / "m"), toy.weights(tmp_path / "m" / "ensemble" / "member-2")) == []
    assert regard.load(tmp_path / "m").card["best"]["chosen"] == "member-2"
    members = [regard.load(tmp_path / "m" / "ensemble" / name) for name in ("member-1", "member-2")]
    assert members[0].ensemble(members[1]).translate("Rahul sees a mango.") is not None


def test_the_members_that_teach_are_chosen_on_dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best ones, as many as score highest together."""
    together = iter([60.0, 50.0, 70.0, 40.0, 30.0])
    monkeypatch.setattr(translation, "chrf", lambda *_: next(together))
    sizes: list[int] = []
    original = translation.translate_in_pieces

    def recorded(translator: Translator, *given: Any) -> list[str]:
        sizes.append(len(getattr(translator.model, "members", [0])))
        return original(translator, *given)

    monkeypatch.setattr(translation, "translate_in_pieces", recorded)
    screen = toy.Watcher()
    run(tmp_path / "m", members=4, screen=screen)
    assert sizes == [4] and "60.0, 50.0, 70.0; number that teach: 4" in screen.text
    run(tmp_path / "n", members=3)
    assert sizes == [4, 2]


def test_the_student_learns_from_the_chosen_members_and_from_new_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its training gets their folders, their translations of all training sources, and those of sentences made from
    these; a run that is resumed keeps the choice, though the scores would now give another one."""
    given: list[dict[str, Any]] = []
    original, scores, new = translation.train, iter([90.0, 0.0]), ["Sita sees Rahul.", "My friend likes the girl."]
    monkeypatch.setattr(translation, "recombined", lambda *_: new)

    def train(*arguments: Any, **options: Any) -> Any:
        given.append(options)
        return original(*arguments, **options)

    monkeypatch.setattr(translation, "train", train)
    monkeypatch.setattr(translation, "chrf", lambda *_: next(scores))
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "m", screen=InterruptingScreen("the student"))
    run(tmp_path / "m", resume=True)
    first, again = given
    assert sorted(folder.name for folder in first["teachers"]) == ["member-1", "member-2"]
    assert (again["teachers"], again["extra"]) == (first["teachers"], first["extra"])
    sources, known = {source for source, _ in first["extra"]}, {source for source, _ in toy.PAIRS}
    assert sources - known == set(new) and len(sources & known) == 64, "dev is not translated"


def test_members_of_both_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They teach together, and the result is of the kind of an ordinary training."""
    shared = {key: value for key, value in toy.TINY.items() if not key.startswith("model.")}
    small = {"model.width": 16, "model.heads": 2, "model.feedforward": 16, "model.dropout": 0.1}
    kinds = [read_recipe("rnn", toy.TINY), read_recipe("transformer", shared | small)]
    monkeypatch.setattr(training, "member_recipes", lambda *_: tuple(kinds))
    translator = run(tmp_path / "m", keep_ensemble=True)
    members = [regard.load(tmp_path / "m" / "ensemble" / f"member-{number}") for number in (1, 2)]
    assert [member.recipe.model.kind for member in members] == ["rnn", "transformer"]
    assert translator.recipe.model.kind == "rnn"
    assert set(translator.card["best"]) == {"run", "chosen", "student", "member-1"}


@pytest.mark.parametrize("kind", ["rnn", "transformer"])
def test_on_a_gpu_members_are_of_both_kinds(kind: str) -> None:
    gpu, other = Budget(on_gpu=True, seconds=None), {"rnn": "transformer", "transformer": "rnn"}[kind]
    chosen = read_recipe(kind)
    recipes = translation.member_recipes(chosen, 20_000, gpu, {})
    assert [recipe.model.kind for recipe in recipes] == [kind, other]
    assert all(recipe.training.consistency == 1.0 for recipe in recipes)
    smoothed = translation.member_recipes(chosen, 20_000, gpu, {"training.label_smoothing": 0.2})
    assert smoothed[1].training.label_smoothing == 0.2
    of_one_kind = {"rnn": {"model.decoder": 64}, "transformer": {"model.feedforward": 64}}[kind]
    for pairs, budget, settings in (
        (20_000, Budget(on_gpu=False, seconds=None), {}),
        (2_000, gpu, {}),
        (20_000, gpu, of_one_kind),
        (20_000, gpu, None),
    ):
        assert len(translation.member_recipes(chosen, pairs, budget, settings)) == 1


MODELS = ["member-1", "member-2", "the student"]


@pytest.mark.parametrize("model", MODELS)
def test_an_interrupted_run_goes_on(model: str, tmp_path: Path) -> None:
    """Interrupted in each of its trainings; what is trained is not trained again."""
    screen = InterruptingScreen(model)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "m", screen=screen)
    with pytest.raises(ValueError, match="expected --resume"):
        run(tmp_path / "m")
    with pytest.raises(ValueError, match="begun with other seed"):
        run(tmp_path / "m", resume=True, seed=7)
    resumed = toy.Watcher()
    ours = run(tmp_path / "m", resume=True, screen=resumed)
    for name in MODELS:
        assert (f"training {name}" in resumed.text) == (MODELS.index(name) >= MODELS.index(model))
    theirs = run(tmp_path / "whole")
    assert ours.card["best"] == theirs.card["best"]
    assert toy.differing(toy.weights(tmp_path / "m"), toy.weights(tmp_path / "whole")) == []


def test_members_side_by_side_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "available_cores", lambda: 2)
    screen = toy.Watcher()
    ours, theirs = run(tmp_path / "m", jobs=2, screen=screen), run(tmp_path / "whole")
    assert "2 models: member-1, member-2; 2 at a time" in screen.text
    assert "member-2: chrF++" in screen.text
    assert ours.card["best"] == theirs.card["best"]


def test_a_member_that_fails_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "to_toml", lambda _: "base = 3")
    with pytest.raises(ValueError, match=r"member-[12]: .*base: expected"):
        run(tmp_path / "m", jobs=3)


class InterruptingScreen(toy.Watcher):
    """Interrupts the first update of a model."""

    def __init__(self, model: str) -> None:
        super().__init__()
        self._model = f"training {model}"

    def advance(self, done: int, total: int | None, text: str, unit: str = "update") -> None:
        super().advance(done, total, text)
        if self._model in self.text and "loss" in text and done > 1:
            raise KeyboardInterrupt


def test_existing_folders(tmp_path: Path) -> None:
    regard.train(toy.PAIRS, tmp_path / "m", settings=toy.TINY, device="cpu")
    with pytest.raises(ValueError, match="there already"):
        run(tmp_path / "m")
    with pytest.raises(ValueError, match="nothing to resume"):
        run(tmp_path / "m", resume=True)
    assert "best" in run(tmp_path / "m", overwrite=True).card
    (tmp_path / "n.parts").mkdir()
    (tmp_path / "n.parts" / "mine.txt").touch()
    with pytest.raises(ValueError, match="in the way"):
        run(tmp_path / "n")


def test_a_translated_piece_is_not_translated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "PIECE", 3)

    class Counting:
        calls: list[list[str]] = []  # noqa: RUF012

        def translate(self, texts: list[str], search: Search) -> list[str]:
            self.calls.append(texts)
            return [text.upper() for text in texts]

    texts: list[str] = ["a", "b", "c", "d"]
    translator: Any = Counting()
    for expected in ([["a", "b", "c"], ["d"]], []):
        translator.calls.clear()
        translations = synthetic.translate_in_pieces(translator, texts, Search(), tmp_path / "s", 1, Silent())
        assert translations == ["A", "B", "C", "D"] and translator.calls == expected
    assert synthetic.translate_in_pieces(translator, ["x"], Search(), tmp_path / "s", 1, Silent()) == ["X"]


@pytest.mark.parametrize("content", ["[", "{}", "[]", "3", '["../other"]', '["member-1", 2]'])
def test_damaged_teachers_are_refused(content: str, tmp_path: Path) -> None:
    work = WorkFolder(tmp_path / "w")
    work.begin({"seed": 1}, [], [])
    assert work.teachers(["member-1", "member-2"], lambda: ["member-2"]) == ["member-2"]
    (work.path / "teachers.json").write_text(content)
    with pytest.raises(ValueError, match=r"teachers.json: damaged: expected a list of members"):
        work.teachers(["member-1", "member-2"], lambda: ["member-1"])


def test_time_already_spent_counts(tmp_path: Path) -> None:
    work = WorkFolder(tmp_path / "w")
    work.begin({"seed": 1}, [], [])
    assert work.spent == 0
    work.add_spent(12.5)
    assert work.spent == 12.5


def test_a_classifier(tmp_path: Path) -> None:
    settings = toy_labels.TINY | {"training.epochs": 2, "model.states": "embeddings"}
    options: dict[str, Any] = {"task": "classify", "members": 2, "settings": settings, "device": "cpu"}
    screen = InterruptingScreen("")
    screen._model = "a model of all texts"
    with pytest.raises(KeyboardInterrupt):
        train_best(toy_labels.TEXTS, tmp_path / "m", screen=screen, **options)
    classifier = train_best(toy_labels.TEXTS, tmp_path / "m", resume=True, keep_ensemble=True, **options)
    assert isinstance(classifier, Classifier)
    best = classifier.card["best"]
    assert best["run"] and best["states"] == "embeddings" and float(best["weights"]) > 0
    assert sorted(path.name for path in (tmp_path / "m" / "ensemble").iterdir()) == ["member-1", "member-2"]
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_wrong_arguments(tmp_path: Path) -> None:
    for options, message in (
        ({"task": "images"}, "best: expected the task translate or classify, got 'images'"),
        ({"members": 0}, "members: expected a whole number ≥ 1"),
        ({"minutes": -1}, "minutes: expected a number above 0"),
        ({"resume": True, "overwrite": True}, "contradict"),
        ({"task": "classify", "settings": {"model.member_weights": "1 + 1 + 1"}}, "best chooses them; got '1"),
    ):
        with pytest.raises(ValueError, match=message):
            train_best(toy.PAIRS, tmp_path / "m", **options)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_data_that_change_before_the_student_is_trained_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The members are trained on a copy of the pairs, the student on the file."""
    data, original = toy.write_tsv(tmp_path / "pairs.tsv"), translation.BestTranslation._synthetic_pairs

    def changes(self: translation.BestTranslation, *names: list[str]) -> list[tuple[str, str]]:
        toy.write_tsv(data, toy.PAIRS[:-1])
        return original(self, *names)

    def best(**options: Any) -> None:
        train_best(data, tmp_path / "m", settings=toy.TINY, members=1, device="cpu", jobs=1, **options)

    monkeypatch.setattr(translation.BestTranslation, "_synthetic_pairs", changes)
    with pytest.raises(ValueError, match="the data changed since the run began; go on with --resume"):
        best()
    assert not (tmp_path / "m.parts" / "student").exists()
    monkeypatch.setattr(translation.BestTranslation, "_synthetic_pairs", original)
    toy.write_tsv(data)
    best(resume=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "pairs.tsv"]


def test_a_work_folder_that_is_half_deleted_can_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its plan goes last: without it, nobody would know what the folder is."""
    work = WorkFolder(tmp_path / "m.parts")
    work.begin({"data": "x"}, toy.pairs(3), toy.pairs(2))
    (work.path / "member-1").mkdir()
    order: list[str] = []
    real = Path.unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:
        order.append(path.name)
        assert [each.name for each in work.path.iterdir()] == ["plan.json"]
        real(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    work.delete()
    assert order == ["plan.json"] and not work.path.exists()
