"""A toy language, a model small enough to train in a second, and screens that watch a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from torch import Tensor

import regard
from regard.runtime.warnings import RegardWarning
from regard.text.pairs import Pair

SUBJECTS = {"The boy": "मुलगा", "The girl": "मुलगी", "Rahul": "राहुल", "Sita": "सीता", "My friend": "माझा मित्र"}
VERBS = {"sees": "पाहतो", "wants": "मागतो", "buys": "विकत घेतो", "likes": "आवडतो"}
OBJECTS = {"a mango": "आंबा", "the book": "पुस्तक", "some water": "पाणी", "a house": "घर"}
PAIRS = [
    (f"{subject} {verb} {thing}.", f"{SUBJECTS[subject]} {OBJECTS[thing]} {VERBS[verb]}.")
    for subject in SUBJECTS
    for verb in VERBS
    for thing in OBJECTS
]
"""80 pairs of 80 sources; 16 of them become dev"""

TINY: dict[str, Any] = {
    "model.embedding": 16,
    "model.encoder": 8,
    "model.decoder": 16,
    "model.attention": 16,
    "vocabulary.size": 200,
    "training.epochs": 2,
    "training.batch_sentences": 16,
    "training.warmup": 2,
    "training.validations": 4,
    "training.patience": 0,
    "training.word_pairs": 0.0,
    "training.placeholders": 0.0,
}
"""4 batches an epoch, 8 updates in all, a validation after every second one"""

LEARNS: dict[str, Any] = TINY | {
    "model.embedding": 32,
    "model.encoder": 16,
    "model.decoder": 32,
    "model.dropout": 0.0,
    "training.epochs": 30,
    "training.learning_rate": 0.02,
    "training.average": 0.9,
    "training.warmup": 10,
    "training.validations": 3,
    "training.segmentation_dropout": 0.0,
}
"""enough to translate some of dev"""

ATTENDS: dict[str, Any] = {key: value for key, value in LEARNS.items() if not key.startswith("model.")} | {
    "model.width": 32,
    "model.heads": 2,
    "model.feedforward": 64,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "model.dropout": 0.0,
    "training.epochs": 30,
    "training.learning_rate": 0.01,
}
"""the same for a Transformer"""
RECIPES = {"rnn": LEARNS, "transformer": ATTENDS}


class Watcher:
    """A screen that keeps what it is told, and may break off the run."""

    def __init__(self, interrupt_at: int | None = None, interrupt_on: str | None = None) -> None:
        self.messages: list[str] = []
        self.statuses: list[str] = []
        self.advanced = 0
        self._at, self._on = interrupt_at, interrupt_on

    @property
    def text(self) -> str:
        return "\n".join(self.messages)

    def say(self, text: str) -> None:
        self.messages.append(text)
        if self._on is not None and self._on in text:
            self._on = None
            raise KeyboardInterrupt

    def advance(self, done: int, total: int | None, text: str, unit: str = "update") -> None:
        self.advanced += 1
        if self.advanced == self._at:
            raise KeyboardInterrupt

    def status(self, text: str) -> None:
        self.statuses.append(text)

    def close(self) -> None:
        pass


def pairs(count: int = len(PAIRS)) -> list[Pair]:
    return [Pair(source, target, line) for line, (source, target) in enumerate(PAIRS[:count], 1)]


def write_tsv(path: Path, texts: list[tuple[str, str]] | None = None) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in texts or PAIRS), encoding="utf-8")
    return path


def interrupted(folder: Path, validated: bool) -> None:
    """A folder whose training has not ended is refused before its first validation, and used with a notice after."""
    if validated:
        with pytest.warns(RegardWarning, match="its training has not ended.*--resume"):
            translator = regard.load(folder, "cpu")
        assert isinstance(translator, regard.Translator)
        assert isinstance(translator.translate("The boy sees a mango."), str)
    else:
        with pytest.raises(ValueError, match=r"no model yet.*--resume"):
            regard.load(folder, "cpu")


def end(folder: Path) -> dict[str, Any]:
    """The one entry of the log that says why the run ended."""
    (result,) = [entry for entry in log(folder) if entry["kind"] == "end"]
    return result


def log(folder: Path) -> list[dict[str, Any]]:
    """The log of a run; JSON has no NaN and no Infinity."""

    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is no JSON")

    text = (folder / "log.jsonl").read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line, parse_constant=refuse) for line in text.split("\n")[:-1]]


def weights(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model.safetensors")


def last(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "training" / "last.safetensors")


def differing(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> list[str]:
    """The names whose tensors are not the same, bit for bit."""
    names = ours.keys() | theirs.keys()
    return sorted(
        name for name in names if name not in ours or name not in theirs or not ours[name].equal(theirs[name])
    )
