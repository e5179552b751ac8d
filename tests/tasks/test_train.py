"""train(): from pairs to a model's folder."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.tasks.train import train
from regard.tasks.translation import task as translating
from regard.tasks.translation.predictor import Translator
from regard.text.pairs import read_pairs
from regard.training import loop as loops
from regard.training.task import Validation
from tests.training import toy

KINDS = {"plan", "update", "validation", "message", "end"}


def small(out: Path, pairs: Any = toy.PAIRS, settings: dict[str, Any] | None = None, **options: Any) -> Translator:
    return train(pairs, out, settings=toy.TINY | (settings or {}), device="cpu", **options)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder, trained for 8 updates. Not to be changed."""
    out = tmp_path_factory.mktemp("train") / "model"
    assert isinstance(small(out), Translator)
    return out


def usable(folder: Path) -> None:
    """Loads, has finite weights, and answers."""
    assert all(bool(tensor.isfinite().all()) for tensor in toy.weights(folder).values())
    found = regard.load(folder, "cpu").translate(["The boy sees a mango.", ""])
    assert len(found) == 2 and isinstance(found[0], str) and found[1] == ""


# What is read, and what is left


def test_it_learns(tmp_path: Path) -> None:
    translator = train(toy.PAIRS, tmp_path / "m", settings=toy.LEARNS, device="cpu", precision="fp32")
    scores = translator.card["scores"] if "scores" in translator.card else regard.load(tmp_path / "m").card["scores"]
    assert scores["chrf"] > 50
    known = [source for source, _ in toy.PAIRS]
    right = sum(a == b for a, (_, b) in zip(translator.translate(known), toy.PAIRS, strict=True))
    assert right > 20


def test_the_folder_has_exactly_what_is_documented(model: Path, tmp_path: Path) -> None:
    apart = {"card.json", "log.jsonl", "model.safetensors", "recipe.toml", "source.json", "target.json", "training"}
    assert {file.name for file in model.iterdir()} == apart
    assert [file.name for file in (model / "training").iterdir()] == ["last.safetensors"]
    assert not model.with_name("model.new").exists()
    small(tmp_path / "joint", settings={"vocabulary.joint": True, "training.epochs": 1})
    assert {file.name for file in (tmp_path / "joint").iterdir()} == apart - {"source.json", "target.json"} | {
        "tokenizer.json"
    }


def test_the_card_says_what_was_trained(model: Path) -> None:
    card = json.loads((model / "card.json").read_text(encoding="utf-8"))
    written = "".join(f"{source}\t{target}\n" for source, target in toy.PAIRS).encode()
    assert card["format"] == 2 and card["seed"] == 1 and card["ended"] == "done"
    assert card["data"]["lines"] == 80 and card["data"]["sha256"] == hashlib.sha256(written).hexdigest()
    assert card["data"]["train_pairs"] + card["data"]["dev_pairs"] == 80
    assert card["versions"].keys() >= {"regard", "torch", "python"}
    assert card["scores"].keys() >= {"bleu", "chrf", "ter", "exact", "signatures"}
    assert card["minutes"] >= 0 and card["command"] and card["hardware"]
    assert card["parameters"] == sum(tensor.numel() for tensor in toy.weights(model).values())


def test_the_scores_on_the_card_are_those_of_evaluate(tmp_path: Path) -> None:
    held = toy.write_tsv(tmp_path / "dev.tsv", toy.PAIRS[60:])
    small(tmp_path / "m", toy.PAIRS[:60], dev=held)
    translator = regard.load(tmp_path / "m", "cpu")
    assert translator.evaluate(read_pairs([held]).pairs).as_dict() == translator.card["scores"]


def test_what_comes_back_knows_its_scores(tmp_path: Path) -> None:
    """The Translator of train() is the one that load() gives."""
    found = small(tmp_path / "m", settings={"training.epochs": 1})
    assert found.card == regard.load(tmp_path / "m").card


def test_texts_and_files_of_every_format_give_the_same_model(model: Path, tmp_path: Path) -> None:
    table = toy.write_tsv(tmp_path / "pairs.tsv")
    objects = tmp_path / "pairs.jsonl"
    objects.write_text("".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in toy.PAIRS), encoding="utf-8")
    sides = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for side, file in enumerate(sides):
        file.write_text("".join(pair[side] + "\n" for pair in toy.PAIRS), encoding="utf-8")
    for number, pairs in enumerate((table, str(table), [objects], sides)):
        small(tmp_path / str(number), pairs)
        assert toy.differing(toy.weights(tmp_path / str(number)), toy.weights(model)) == []


def test_reverse_turns_round(tmp_path: Path) -> None:
    turned = [(target, source) for source, target in toy.PAIRS]
    small(tmp_path / "a", reverse=True, settings={"training.epochs": 1})
    small(tmp_path / "b", turned, settings={"training.epochs": 1})
    assert toy.differing(toy.weights(tmp_path / "a"), toy.weights(tmp_path / "b")) == []


@pytest.mark.parametrize("pairs", [[], [("a",)], [("a", 3)], ["a", ("b", "c")], [("", "x")], 5, [("a", "b")] * 9])
def test_what_is_no_data_is_one_clear_error(pairs: Any, tmp_path: Path) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        small(tmp_path / "m", pairs)
    assert "\n" not in str(error.value) and "pairs" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_what_is_skipped_is_told_on_the_screen_and_in_the_log(tmp_path: Path) -> None:
    """`regard train --help`: everything that is told also stands in log.jsonl."""
    screen = toy.Watcher()
    small(tmp_path / "m", [*toy.PAIRS, ("", "x")], screen=screen, settings={"training.epochs": 1})
    assert any("1 line skipped" in text and "81" in text for text in screen.said)
    assert "skipped" in (tmp_path / "m" / "log.jsonl").read_text(encoding="utf-8")


def test_leaked_dev_sources_are_told(tmp_path: Path) -> None:
    screen = toy.Watcher()
    small(tmp_path / "m", dev=toy.PAIRS[:7], screen=screen, settings={"training.epochs": 1})
    assert "7 of its sources also occur in training" in screen.text


# Where it is kept


def test_a_folder_that_is_there_is_refused(model: Path) -> None:
    before = toy.weights(model)
    with pytest.raises(ValueError, match="there already; expected --resume, to go on, or --overwrite"):
        small(model, seed=2)
    with pytest.raises(ValueError, match="contradict"):
        small(model, resume=True, overwrite=True)
    assert toy.differing(toy.weights(model), before) == []


@pytest.mark.parametrize("how", [{}, {"overwrite": True}, {"resume": True}])
@pytest.mark.parametrize("kind", ["folder", "empty folder", "file"])
def test_what_is_no_model_is_never_touched(how: dict[str, bool], kind: str, tmp_path: Path) -> None:
    out = tmp_path / "thesis"
    if kind == "file":
        out.write_text("mine")
    else:
        out.mkdir()
        if kind == "folder":
            (out / "chapter.txt").write_text("mine")
    before = sorted((str(file), file.is_dir() or file.read_text()) for file in tmp_path.rglob("*"))
    with pytest.raises(ValueError, match="thesis") as error:
        small(out, **how)
    assert "\n" not in str(error.value)
    assert before == sorted((str(file), file.is_dir() or file.read_text()) for file in tmp_path.rglob("*"))


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_neighbour_with_new_at_its_end_is_never_touched(overwrite: bool, tmp_path: Path) -> None:
    """The folder is built beside --out: not in one that somebody else has there."""
    (tmp_path / "model.new").mkdir()
    (tmp_path / "model.new" / "chapter.txt").write_text("mine")
    if overwrite:
        small(tmp_path / "other", settings={"training.epochs": 1})
        (tmp_path / "other").rename(tmp_path / "model")
    with suppress(ValueError):  # to refuse would do
        small(tmp_path / "model", settings={"training.epochs": 1}, overwrite=overwrite)
    assert (tmp_path / "model.new" / "chapter.txt").read_text() == "mine"
    with pytest.raises(ValueError, match=r"model\.new: in the way"):  # before data is read
        small(tmp_path / "model", tmp_path / "nowhere.tsv", overwrite=overwrite)


@pytest.mark.parametrize("how", [{}, {"overwrite": True}])
def test_a_file_in_place_of_the_folder_is_not_offered_to_be_overwritten(how: dict[str, bool], tmp_path: Path) -> None:
    (tmp_path / "m").write_text("mine")
    with pytest.raises(ValueError, match="m: expected a folder for the model, got a file") as error:
        small(tmp_path / "m", tmp_path / "nowhere.tsv", **how)
    assert "--overwrite" not in str(error.value)


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_folder_that_could_not_be_made_leaves_nothing_behind(
    overwrite: bool, error: type[BaseException], model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if overwrite:
        shutil.copytree(model, tmp_path / "m")
    before = sorted(str(file) for file in tmp_path.rglob("*"))
    real = Path.rename

    def fails(path: Path, target: Path) -> Path:
        if path.name.endswith(".new"):  # the last step, when an old model is already out of the way
            raise error
        return real(path, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(error):
        small(tmp_path / "m", overwrite=overwrite)
    assert sorted(str(file) for file in tmp_path.rglob("*")) == before


def test_a_link_that_leads_to_itself_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ValueError, match="loop: expected a file or folder, got a symbolic link that leads back"):
        regard.train(toy.PAIRS, tmp_path / "loop", device="cpu")
    assert [file.name for file in tmp_path.iterdir()] == ["loop"]


def test_overwrite_begins_anew(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    small(out, seed=5, settings={"training.epochs": 1})
    (out / "stale.txt").write_text("of the old model")
    small(out, overwrite=True)
    assert toy.differing(toy.weights(out), toy.weights(model)) == []
    assert not (out / "stale.txt").exists()
    assert [entry["kind"] for entry in toy.log(out)].count("plan") == 1


def test_data_that_cannot_be_read_leaves_the_old_model(tmp_path: Path) -> None:
    out = tmp_path / "m"
    small(out, settings={"training.epochs": 1})
    before = toy.weights(out)
    with pytest.raises(ValueError, match=r"nowhere\.tsv"):
        small(out, tmp_path / "nowhere.tsv", overwrite=True)
    with pytest.raises(ValueError, match="pattern"):
        small(out, overwrite=True, settings={"model.pattern": "windw(3)"})
    assert toy.differing(toy.weights(out), before) == []
    assert [file.name for file in tmp_path.iterdir()] == ["m"]


# What is computed


def test_the_same_seed_gives_the_same_weights_and_another_does_not(model: Path, tmp_path: Path) -> None:
    torch.manual_seed(999)  # what was drawn before does not matter
    small(tmp_path / "same")
    assert toy.differing(toy.weights(tmp_path / "same"), toy.weights(model)) == []
    assert toy.differing(toy.last(tmp_path / "same"), toy.last(model)) == []
    small(tmp_path / "other", seed=2)
    assert toy.differing(toy.weights(tmp_path / "other"), toy.weights(model))


VARIANTS: dict[str, dict[str, Any]] = {
    "scheduled sampling": {"training.scheduled_sampling": 0.5},
    "hard, straight through": {"model.normalizer": "hard", "model.estimator": "straight_through"},
    "hard, gumbel": {"model.normalizer": "hard", "model.estimator": "gumbel"},
    "hard, reinforce": {"model.normalizer": "hard", "model.estimator": "reinforce"},
    "lstm": {"model.cell": "lstm", "model.encoder_layers": 2, "model.decoder_layers": 2},
    "bahdanau": {"model.order": "bahdanau"},
    "no input feeding": {"model.input_feeding": False},
    "dot": {"model.score": "scaled_dot"},
    "local": {"model.predictive": 2, "model.normalizer": "entmax15"},
    "tied": {"vocabulary.joint": True, "model.tie": "all"},
    "by pairs alone": {"training.clip": 0, "training.average": 0, "model.bridge": False, "model.tie": "none"},
    "words": {"vocabulary.kind": "words"},
    "article": {},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_kind_of_model_trains_and_its_loss_falls(name: str, tmp_path: Path) -> None:
    base = {key: value for key, value in toy.TINY.items() if name != "article" or key != "vocabulary.size"}
    fast = {"training.epochs": 5, "training.learning_rate": 0.02, "training.validations": 1, "model.dropout": 0.0}
    out = tmp_path / "m"
    recipe = "article" if name == "article" else "rnn"
    train(toy.PAIRS, out, recipe=recipe, settings=base | fast | VARIANTS[name], device="cpu")
    entries = toy.log(out)
    first = next(entry["loss"] for entry in entries if entry["kind"] == "update")
    (validation,) = (entry for entry in entries if entry["kind"] == "validation")
    assert validation["update"] == 20 and validation["loss"] < 0.9 * first
    usable(out)


def test_words_keep_every_word_and_lower_case(tmp_path: Path) -> None:
    settings = {"model.embedding": 8, "model.encoder": 8, "model.decoder": 8, "model.attention": 8}
    found = train(toy.PAIRS, tmp_path / "m", recipe="article", settings=settings | {"training.epochs": 1}, device="cpu")
    words = {word for source, _ in toy.PAIRS for word in re.findall(r"[a-z]+|\.", source.lower())}
    assert found.vocabularies.source.tokens.keys() == words | {"<pad>", "<s>", "</s>", "<unk>"}
    assert found.vocabularies.source.decode(found.vocabularies.source.encode("The BOY sees.")) == "the boy sees."


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_model_is_kept_in_float32(precision: Any, tmp_path: Path) -> None:
    small(tmp_path / "m", settings={"training.epochs": 1}, precision=precision)
    assert {tensor.dtype for tensor in toy.weights(tmp_path / "m").values()} == {torch.float32}


# What can go wrong


def test_a_run_that_diverges_before_its_first_validation_leaves_no_model(tmp_path: Path) -> None:
    settings = {"training.learning_rate": 1e11, "training.epochs": 6, "training.clip": 0}
    for how in ({}, {"resume": True}):  # it cannot go on either
        with pytest.raises(ValueError, match=r"no model: .*before the first validation \(diverged") as error:
            small(tmp_path / "m", settings=settings, **how)
        assert "\n" not in str(error.value) and "--overwrite" in str(error.value)
    toy.log(tmp_path / "m")
    with pytest.raises(ValueError, match=r"no model: .*diverged"):
        regard.load(tmp_path / "m", "cpu")
    small(tmp_path / "m", overwrite=True)
    usable(tmp_path / "m")


@pytest.mark.parametrize(("since", "validations"), [(1, 1), (13, 4), (3, 24)])
def test_a_loss_that_is_no_number_ends_the_run_in_words(
    since: int, validations: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model that is kept is one from before, if any was validated."""
    real, calls = translating.smoothed_loss, [0]

    def broken(*given: Any) -> tuple[torch.Tensor, torch.Tensor]:
        calls[0] += 1
        loss, each = real(*given)
        return (loss * math.nan, each) if calls[0] >= since else (loss, each)

    monkeypatch.setattr(translating, "smoothed_loss", broken)
    screen = toy.Watcher()
    settings = {"training.epochs": 6, "training.validations": validations, "training.average": 0.9}
    if validations == 1:
        with pytest.raises(ValueError, match=r"no model: .*diverged"):
            small(tmp_path / "m", settings=settings, screen=screen)
    else:
        small(tmp_path / "m", settings=settings, screen=screen)
        usable(tmp_path / "m")
    assert "diverged: the loss became NaN; try a lower training.learning_rate" in screen.text
    ends = [entry for entry in toy.log(tmp_path / "m") if entry["kind"] == "end"]
    assert len(ends) == 1 and ends[0]["why"].startswith("diverged")
    assert ends[0]["update"] <= since + loops.CHECK_INTERVAL
    assert ends[0]["best_update"] < since


NOTHING = "nothing is learned yet: every source gets the same translation"


def test_a_model_that_says_the_same_to_everything_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def only_ends(loop: loops.Loop) -> None:
        loop.average["output.bias"][2] = 100.0

    monkeypatch.setattr(loops.Loop, "_take_average", only_ends)
    screen = toy.Watcher()
    small(tmp_path / "m", screen=screen)
    assert NOTHING in screen.text and "(nothing)" in screen.text
    assert any(entry["kind"] == "message" and NOTHING in entry["text"] for entry in toy.log(tmp_path / "m"))


def test_a_run_that_learned_nothing_says_so(tmp_path: Path) -> None:
    """At a learning rate of nothing: the same piece again and again, as long as each source allows."""
    screen = toy.Watcher()
    small(tmp_path / "m", screen=screen, settings={"training.learning_rate": 1e-12})
    assert "nothing is learned" in screen.text


def test_a_run_that_learns_does_not_say_so(tmp_path: Path) -> None:
    screen = toy.Watcher()
    small(tmp_path / "m", screen=screen, settings={"training.learning_rate": 0.02, "training.epochs": 10})
    assert "best so far" in screen.text
    validations = [entry for entry in toy.log(tmp_path / "m") if entry["kind"] == "validation"]
    assert validations[-1]["dev_loss"] < validations[0]["dev_loss"]
    assert "nothing is learned:" not in screen.text


def test_a_run_by_the_clock_keeps_to_its_time(tmp_path: Path) -> None:
    minutes = 0.1
    began = time.monotonic()
    small(tmp_path / "m", minutes=minutes)
    assert 0.5 * minutes * 60 < time.monotonic() - began < 1.3 * minutes * 60 + 1
    usable(tmp_path / "m")
    plans = [entry for entry in toy.log(tmp_path / "m") if entry["kind"] == "plan"]
    assert not plans[0]["settled"] and plans[-1]["updates"] > 24
    assert toy.end(tmp_path / "m")["best_update"] > 0


def test_no_time_at_all_still_leaves_a_model(tmp_path: Path) -> None:
    small(tmp_path / "m", minutes=1e-6)
    usable(tmp_path / "m")
    assert toy.end(tmp_path / "m")["why"] == "the time is up"


@pytest.mark.parametrize("minutes", [math.nan, math.inf, -1.0])
def test_minutes_that_are_no_time_are_refused(minutes: float, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="minutes"):
        small(tmp_path / "m", minutes=minutes)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("device", ["foo", "cuda" if not torch.cuda.is_available() else "cuda:99"])
def test_a_device_that_is_not_there_is_refused_before_anything_is_written(device: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="device"):
        train(toy.PAIRS, tmp_path / "m", settings=toy.TINY, device=device)
    assert list(tmp_path.iterdir()) == []


# What is told


def test_the_log_is_json_lines_of_known_kinds(model: Path) -> None:
    entries = toy.log(model)
    assert {entry["kind"] for entry in entries} <= KINDS
    assert all(time.strptime(entry["time"], "%Y-%m-%dT%H:%M:%SZ") for entry in entries)
    (plan,) = [entry for entry in entries if entry["kind"] == "plan"]
    assert plan["updates"] == 8 and plan["validations"] == [2, 4, 6, 8]
    assert [entry["update"] for entry in entries if entry["kind"] == "validation"] == [2, 4, 6, 8]
    for entry in entries:
        if entry["kind"] == "update":
            assert entry.keys() >= {"update", "epoch", "loss", "tokens_per_second", "seconds"}
        if entry["kind"] == "validation":
            assert entry.keys() >= {"chrf", "exact", "best", "loss", "seconds", "source", "translation", "reference"}
    assert toy.end(model)["why"] == "done"


def test_the_seconds_of_a_validation_are_those_of_its_moment(tmp_path: Path) -> None:
    small(tmp_path / "m", settings={"training.epochs": 13, "training.validations": 2})
    seconds = [entry["seconds"] for entry in toy.log(tmp_path / "m") if entry["kind"] in ("update", "validation")]
    assert seconds == sorted(seconds)


def falling_scores(monkeypatch: pytest.MonkeyPatch, scores: list[float]) -> None:
    left = iter(scores)
    monkeypatch.setattr(translating, "validate", lambda *given: Validation(next(left), "", "s"))


def test_the_best_model_is_kept_and_patience_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    falling_scores(monkeypatch, [1.0, 5.0, 4.0, 3.0, 9.0])
    settings = {"training.epochs": 5, "training.validations": 5, "training.patience": 2}
    small(tmp_path / "m", settings=settings)
    end = toy.end(tmp_path / "m")
    assert end["why"] == "no better for 2 validations" and end["best"] == 5.0
    assert (end["best_update"], end["update"]) == (8, 16)
    # The same, broken off after its eighth update: the average of that moment is the model.
    falling_scores(monkeypatch, [1.0, 5.0, 4.0, 3.0, 9.0])
    with pytest.raises(KeyboardInterrupt):
        small(tmp_path / "n", settings=settings, screen=toy.Watcher(interrupt_on="update 8:"))
    assert toy.differing(toy.weights(tmp_path / "m"), toy.weights(tmp_path / "n")) == []


def test_a_run_ends_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where patience is at its end with the last update."""
    falling_scores(monkeypatch, [5.0, 4.0])
    screen = toy.Watcher()
    small(tmp_path / "m", settings={"training.validations": 2, "training.patience": 1}, screen=screen)
    assert [entry["kind"] for entry in toy.log(tmp_path / "m")].count("end") == 1
    assert sum("after 8 updates" in text for text in screen.said) == 1
