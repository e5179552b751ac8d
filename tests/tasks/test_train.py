"""train(): what it reads, and the model that it computes."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.tasks.train import train
from regard.text.pairs import read_pairs
from tests.tasks.small import small, usable
from tests.training import toy

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
    locked = toy.write_tsv(tmp_path / "dev.tsv", toy.PAIRS[60:])
    small(tmp_path / "m", toy.PAIRS[:60], dev=locked)
    translator = regard.load(tmp_path / "m", "cpu")
    assert translator.evaluate(read_pairs([locked]).pairs).as_dict() == translator.card["scores"]


def test_what_comes_back_knows_its_scores(tmp_path: Path) -> None:
    """The Translator of train() is the one that load() gives."""
    result = small(tmp_path / "m", settings={"training.epochs": 1})
    assert result.card == regard.load(tmp_path / "m").card


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
    assert any("1 line skipped" in text and "81" in text for text in screen.messages)
    assert "skipped" in (tmp_path / "m" / "log.jsonl").read_text(encoding="utf-8")


def test_leaked_dev_sources_are_told(tmp_path: Path) -> None:
    screen = toy.Watcher()
    small(tmp_path / "m", dev=toy.PAIRS[:7], screen=screen, settings={"training.epochs": 1})
    assert "7 of its sources also occur in training" in screen.text


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
    result = train(
        toy.PAIRS, tmp_path / "m", recipe="article", settings=settings | {"training.epochs": 1}, device="cpu"
    )
    words = {word for source, _ in toy.PAIRS for word in re.findall(r"[a-z]+|\.", source.lower())}
    assert result.vocabularies.source.tokens.keys() == words | {"<pad>", "<s>", "</s>", "<unk>"}
    assert result.vocabularies.source.decode(result.vocabularies.source.encode("The BOY sees.")) == "the boy sees."


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_model_is_kept_in_float32(precision: Any, tmp_path: Path) -> None:
    small(tmp_path / "m", settings={"training.epochs": 1}, precision=precision)
    assert {tensor.dtype for tensor in toy.weights(tmp_path / "m").values()} == {torch.float32}


def test_extra_pairs_are_trained_on_and_dev_is_never_taken_from_them(tmp_path: Path) -> None:
    plain = regard.train(toy.PAIRS, tmp_path / "plain", settings=toy.TINY, device="cpu")
    extra = [("A new mango.", "आंबा नवा."), ("A new house.", "घर नवे."), toy.PAIRS[0]]
    more = regard.train(toy.PAIRS, tmp_path / "more", extra=extra, settings=toy.TINY, device="cpu")
    ours, theirs = more.card["data"], plain.card["data"]
    assert ours["dev_pairs"] == theirs["dev_pairs"] and ours["sha256"] == theirs["sha256"]
    assert ours["train_pairs"] == theirs["train_pairs"] + 2  # a pair that is there already is not added
    assert ours["extra_sha256"] and not theirs["extra_sha256"]
    with pytest.raises(ValueError, match="begun with other extra data"):
        regard.train(toy.PAIRS, tmp_path / "more", settings=toy.TINY, device="cpu", resume=True)


def test_extra_pairs_with_a_source_of_dev_are_left_out(tmp_path: Path) -> None:
    dev = [("Sita sees a mango!", "सीता आंबा पाहतो.")]
    screen = toy.Watcher()
    extra = [("sita sees a mango", "आंबा"), ("A new house.", "घर नवे.")]
    regard.train(toy.PAIRS[:40], tmp_path / "m", dev=dev, extra=extra, settings=toy.TINY, device="cpu", screen=screen)
    assert "1 further pairs for training, of 2" in screen.text


def test_extra_is_for_translating(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="extra are for translating"):
        regard.train([("a", "b")], tmp_path / "m", task="classify", extra=[("a", "b")])
