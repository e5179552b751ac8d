"""`regard.tune`: a trained model goes on with new examples."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import regard
from regard.config.recipe import Recipe
from regard.tasks.registry import TRANSLATION
from regard.tasks.tuned_task import TunedTask, forgetting_cost
from regard.tasks.tuning import TuningSpec
from regard.training.checkpoint import Progress
from tests.tasks.small import usable
from tests.training import toy, toy_labels

OLD = [pair for pair in toy.PAIRS if not pair[0].startswith("The boy")]
NEW = [pair for pair in toy.PAIRS if pair[0].startswith("The boy")]
QUICK: dict[str, Any] = {
    "training.epochs": 3,
    "training.warmup": 2,
    "training.validations": 3,
    "training.patience": 0,
    "training.batch_sentences": 8,
}
LEARNS = QUICK | {
    "training.epochs": 40,
    "training.learning_rate": 0.01,
    "training.average": 0.9,
    "training.max_forgetting": 100.0,
}


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator that has never seen a boy. Not to be changed."""
    out = tmp_path_factory.mktemp("tune") / "old"
    regard.train(OLD, out, settings=toy.LEARNS | {"training.epochs": 20}, device="cpu", languages=("en", "mr"))
    return out


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier with a mistake: it takes "lovely" for bad. Not to be changed."""
    out = tmp_path_factory.mktemp("tune") / "classifier"
    settings = toy_labels.TINY | {"model.states": "embeddings + tfidf"}
    texts = [(text, "bad" if "lovely" in text else label) for text, label in toy_labels.TEXTS]
    regard.train(texts, out, task="classify", settings=settings, device="cpu")
    return out


def tuned(old: Path, out: Path, pairs: Any = NEW, settings: dict[str, Any] | None = None, **options: Any) -> Any:
    return regard.tune(old, pairs, out, settings=QUICK | (settings or {}), device="cpu", **options)


# Translators


def test_tuning_learns_the_new_and_keeps_the_vocabulary(old: Path, tmp_path: Path) -> None:
    before = {file.name: file.read_bytes() for file in old.iterdir() if file.is_file()}
    screen = toy.Watcher()
    model = tuned(old, tmp_path / "new", settings=LEARNS, dev=NEW[:6], replay=OLD, old_dev=OLD[::4], screen=screen)
    entry = model.card["tuned_from"]
    assert entry["new_dev"]["after"]["chrf"] > entry["new_dev"]["before"]["chrf"] + 10
    assert entry["old_dev"]["before"]["sources"] == len(OLD[::4])
    assert entry["weights_sha256"] == regard.load(old).card["weights_sha256"] and entry["name"] == str(old)
    assert "new dev  chrF++  before" in screen.text and "old dev  chrF++  before" in screen.text
    assert "old dev: chrF++" in next(line for line in screen.messages if line.startswith("update"))
    for name in ("source.json", "target.json"):
        assert (tmp_path / "new" / name).read_bytes() == before[name]
    assert {file.name: file.read_bytes() for file in old.iterdir() if file.is_file()} == before, "nothing changed there"
    usable(tmp_path / "new")
    assert model.card["languages"] == ["en", "mr"], "those of the old model"
    assert model.limit.max_length(5) >= regard.load(old).limit.max_length(5)
    again = tuned(tmp_path / "new", tmp_path / "newer")
    assert again.card["tuned_from"]["weights_sha256"] == model.card["weights_sha256"]


def test_replay_sets_its_own_dev_part_aside(old: Path, tmp_path: Path) -> None:
    screen = toy.Watcher()
    model = tuned(old, tmp_path / "new", replay=OLD, screen=screen)
    assert "old: 52 pairs for training, 12 for validation" in screen.text
    assert "52 of 52 old pairs for training, about 52 in each epoch" in screen.text, "four for each of 13 new ones"
    assert model.card["tuned_from"]["old_dev"]["after"]["sources"] == 12


def test_without_old_pairs_nothing_is_measured_on_them(old: Path, tmp_path: Path) -> None:
    screen = toy.Watcher()
    model = tuned(old, tmp_path / "new", screen=screen)
    assert "what the model forgets is not measured" in screen.text
    assert "old_dev" not in model.card["tuned_from"] and "old dev" not in screen.text


def test_the_old_weights_stay_if_nothing_is_gained(old: Path, tmp_path: Path) -> None:
    screen = toy.Watcher()
    wrong = [(source, target[::-1]) for source, target in OLD]
    model = tuned(old, tmp_path / "new", wrong, {"training.learning_rate": 0.05}, dev=OLD[:10], screen=screen)
    assert "the old weights stay" in screen.text and "tuned: new dev  chrF++  before" in screen.text
    assert toy.differing(toy.weights(tmp_path / "new"), toy.weights(old)) == []
    part = model.card["tuned_from"]["new_dev"]
    assert part["before"] == part["after"] and model.card["scores"]["chrf"] == pytest.approx(
        part["after"]["chrf"], abs=1e-3
    )
    assert model.card["weights_sha256"] == regard.load(old).card["weights_sha256"]


def test_the_pull_is_half_the_squared_distance(old: Path) -> None:
    task = task_of(old, {"training.pull": 3.0})
    plain = task_of(old, {"training.pull": 0.0})
    batch, progress = task.epoch(0)[0](torch.device("cpu")), Progress()
    for each in (task, plain):
        each.model.eval()
        with torch.no_grad():
            for weight in each.model.parameters():
                weight.add_(0.01)
    count = sum(weight.numel() for weight in task.model.parameters())
    difference = task.loss(batch, progress)[0] - plain.loss(batch, progress)[0]
    assert float(difference.detach()) == pytest.approx(3.0 / 2 * count * 0.01**2, rel=1e-3)
    share = task.loss(batch, progress, (0.5, 0.5))[0] - plain.loss(batch, progress, (0.5, 0.5))[0]
    assert float(share.detach()) == pytest.approx(float(difference.detach()) / 2, rel=1e-3)


def task_of(old: Path, settings: dict[str, Any]) -> TunedTask:
    spec = TuningSpec(TRANSLATION, old, old, None, OLD[:8])
    recipe = spec.recipe(None, QUICK | settings)
    return spec.task(spec.data(regard.tasks.spec.Given(NEW), recipe, toy.Watcher()), recipe, 1)


def test_models_are_chosen_by_both_dev_parts(old: Path) -> None:
    task, cpu = task_of(old, {}), torch.device("cpu")
    assert task.old is not None
    alone, on_old = task.inner.validate(0, cpu, 1000).score, task.old.validate(0, cpu, 1000).score
    same = task.validate(0, cpu, 1000)
    assert same.score == alone and "old dev: chrF++" in same.summary, "nothing is forgotten yet"
    assert task.scores_before == {1000: on_old}, "the model has its old weights"
    task.scores_before[1000] = on_old + 2.0  # as if it had been better
    worse = task.validate(0, cpu, 1000)
    assert worse.score == pytest.approx(alone - forgetting_cost(2.0, task.recipe)) and "(-2.0)" in worse.summary
    assert forgetting_cost(0.4, Recipe()) == 0.0 < forgetting_cost(0.6, Recipe())


# Broken off


@pytest.fixture(scope="module")
def whole(old: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tune") / "whole"
    tuned(old, out, replay=OLD)
    return out


def same(ours: Path, theirs: Path) -> None:
    assert toy.differing(toy.weights(ours), toy.weights(theirs)) == []
    assert toy.differing(toy.last(ours), toy.last(theirs)) == []
    cards = [json.loads((folder / "card.json").read_text(encoding="utf-8")) for folder in (ours, theirs)]
    assert cards[0]["scores"] == cards[1]["scores"] and cards[0]["tuned_from"] == cards[1]["tuned_from"]


@pytest.mark.parametrize("message", ["plan:", "best so far", "the model is that of", "new dev  chrF++"])
def test_an_interruption_changes_nothing(message: str, old: Path, whole: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        tuned(old, tmp_path / "m", replay=OLD, screen=toy.Watcher(interrupt_on=message))
    torch.manual_seed(77)
    tuned(old, tmp_path / "m", replay=OLD, resume=True)
    same(tmp_path / "m", whole)


def test_a_killed_run_goes_on(old: Path, tmp_path: Path) -> None:
    toy.write_tsv(tmp_path / "new.tsv", NEW)
    toy.write_tsv(tmp_path / "old.tsv", OLD)
    settings = [part for key, value in QUICK.items() for part in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "regard", "tune", str(old), "new.tsv", "--out", "m", "--old-dev", "old.tsv"]
    command += ["--device", "cpu", "--threads", "1", *settings]
    run = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    log = tmp_path / "m" / "log.jsonl"
    while not (log.exists() and b'"validation"' in log.read_bytes()):
        time.sleep(0.01)
        assert run.poll() is None
    run.send_signal(signal.SIGKILL)
    run.wait()
    with pytest.warns(match=r"its training has not ended.*regard tune … --out .* --resume"):
        regard.load(tmp_path / "m", "cpu")
    done = subprocess.run([*command, "--resume", "--json"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["old_dev"]["before"]["sources"] == len(OLD)
    tuned(old, tmp_path / "uninterrupted", tmp_path / "new.tsv", old_dev=tmp_path / "old.tsv")
    assert toy.differing(toy.weights(tmp_path / "m"), toy.weights(tmp_path / "uninterrupted")) == []


def test_only_the_same_run_is_resumed(old: Path, whole: Path, tmp_path: Path) -> None:
    other = shutil.copytree(old, tmp_path / "other")
    save_file({name: tensor * 1.01 for name, tensor in toy.weights(old).items()}, other / "model.safetensors")
    cases: list[tuple[str, Path, dict[str, Any]]] = [
        ("other model to tune", other, {"replay": OLD}),
        ("other data", old, {"replay": OLD, "pairs": NEW[:-1]}),
        ("other old pairs", old, {"replay": OLD[:-1]}),
        ("other old pairs", old, {"replay": OLD, "old_dev": OLD[:9]}),
        ("other seed", old, {"replay": OLD, "seed": 2}),
        ("other recipe", old, {"replay": OLD, "settings": {"training.pull": 0.5}}),
    ]
    for message, model, options in cases:
        with pytest.raises(ValueError, match=f"begun with {message}"):
            tuned(model, whole, resume=True, **options)
    with pytest.raises(ValueError, match="begun with other model to tune"):
        regard.train(NEW, whole, settings=toy.TINY, resume=True, device="cpu")


# Classifiers


def test_a_classifier_is_tuned(classifier: Path, tmp_path: Path) -> None:
    new = [each for each in toy_labels.TEXTS if "lovely" in each[0] or "clumsy" in each[0]]
    old = [each for each in toy_labels.TEXTS if "lovely" not in each[0]]
    screen = toy.Watcher()
    settings = {"training.epochs": 15, "training.learning_rate": 0.02}
    model = tuned(classifier, tmp_path / "new", new, settings, dev=new, old_dev=old, screen=screen)
    entry = model.card["tuned_from"]
    assert entry["new_dev"]["after"]["accuracy"] > entry["new_dev"]["before"]["accuracy"] + 20
    assert entry["old_dev"]["after"]["accuracy"] > 90 and "old dev  accuracy  before" in screen.text
    assert model.labels == regard.load(classifier).labels and "temperature" in model.card
    assert (tmp_path / "new" / "tokenizer.json").read_bytes() == (classifier / "tokenizer.json").read_bytes()
    assert regard.load(tmp_path / "new").classify("Her play is really lovely, they say.") == "good"
    assert not torch.equal(toy.weights(tmp_path / "new")["tfidf.bias"], toy.weights(classifier)["tfidf.bias"])


def test_new_labels_are_refused_with_what_to_do(classifier: Path, tmp_path: Path) -> None:
    texts, other = toy_labels.TEXTS[:60], [*toy_labels.TEXTS[60:], ("It is neither.", "so-so")]
    for options in (
        {"pairs": other, "dev": texts},
        {"dev": other},
        {"replay": other, "old_dev": texts},
        {"old_dev": other},
    ):
        with pytest.raises(ValueError, match=r"expected those of the model \(bad, good\), got so-so.*train anew"):
            tuned(classifier, tmp_path / "new", **{"pairs": texts} | options)
    assert not (tmp_path / "new").exists()


# Mistakes


def test_mistakes_are_named(old: Path, whole: Path, tmp_path: Path) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("neither the model nor its vocabulary", {"settings": {"model.encoder": 9}}),
        ("neither the model nor its vocabulary", {"settings": {"vocabulary.size": 300}}),
        ("did you mean 'training.pull'", {"settings": {"training.pul": 1}}),
        ("training.pull: expected a number of at least 0", {"settings": {"training.pull": -1.0}}),
        ("expected old pairs, got none besides the new ones", {"replay": NEW, "old_dev": OLD}),
        ("nowhere.tsv", {"replay": "nowhere.tsv"}),
        ("nowhere.tsv", {"old_dev": "nowhere.tsv"}),
    ]
    for message, options in cases:
        with pytest.raises(ValueError, match=message):
            tuned(old, tmp_path / "new", **options)
    with pytest.raises(ValueError, match="expected another folder than that of the model"):
        tuned(old, old, overwrite=True)
    with pytest.raises(ValueError, match="there already"):
        tuned(old, whole)
    with pytest.raises(ValueError, match="made by `regard tune` from another model"):
        regard.train_from_card(whole, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_model_of_images_is_refused(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text('{"format": 2, "task": "images"}', encoding="utf-8")
    with pytest.raises(ValueError, match="expected a translator or a classifier of texts to tune"):
        tuned(tmp_path, tmp_path / "new")
