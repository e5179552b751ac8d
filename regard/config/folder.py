"""A model's folder: all that is needed to use it, and nothing else.

    recipe.toml            what was trained, and how
    tokenizer.json         one vocabulary for both sides, or source.json and target.json
    model.safetensors      the weights, those with the best score on dev; not there before the first validation
    card.json              languages, data, versions, scores …; `format` says which version of this layout it is;
                           `ended` says why training ended, and is not there before
    log.jsonl              what happened in training
    training/              what resuming needs; may be deleted

Files are replaced atomically: a reader sees the old content or the new. No pickle is written or read.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save
from torch import Tensor

from regard.config.recipe import Recipe
from regard.config.recipe_text import SECTIONS, from_toml
from regard.runtime.warnings import RegardWarning
from regard.text.vocabulary import Vocabulary

FORMAT = 2
_NUMBERS = re.compile(r"\[\n\s+((?:[-+.\deE]+,?\s+)+)\]")  # a list of numbers, which a card has on one line
WEIGHTS, RECIPE, CARD, LOG, TRAINING = "model.safetensors", "recipe.toml", "card.json", "log.jsonl", "training"


@dataclass(frozen=True)
class Vocabularies:
    """The vocabularies of the two sides: one and the same object if they share it."""

    source: Vocabulary
    target: Vocabulary

    @property
    def joint(self) -> bool:
        return self.source is self.target


def write(path: Path, content: bytes | str) -> None:
    """Replace a file atomically: the new content is on the disk before it takes the name."""
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(path.name + ".new")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def write_tensors(path: Path, tensors: dict[str, Tensor], notes: dict[str, str] | None = None) -> None:
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write(path, save(on_cpu, metadata=notes))


def write_vocabularies(folder: Path, vocabularies: Vocabularies) -> None:
    if vocabularies.joint:
        write(folder / "tokenizer.json", vocabularies.source.to_json())
    else:
        write(folder / "source.json", vocabularies.source.to_json())
        write(folder / "target.json", vocabularies.target.to_json())


def write_card(folder: Path, card: dict[str, Any]) -> None:
    text = json.dumps({"format": FORMAT, **card}, ensure_ascii=False, indent=2) + "\n"
    text = _NUMBERS.sub(lambda match: f"[{' '.join(match[1].split())}]", text)
    write(folder / CARD, text.encode(errors="backslashreplace"))  # file names need not be valid UTF-8


def read_card(folder: Path) -> dict[str, Any]:
    """Return the card of a model's folder; raise a ValueError if it is damaged or of another format."""
    if not folder.is_dir():
        raise ValueError(
            f"{folder}: expected the folder of a model, found {'a file' if folder.exists() else 'nothing'}"
        )
    if not (folder / CARD).is_file():
        raise ValueError(f"{folder}: not a model's folder: it has no {CARD}")
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        version = card["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(f"{folder / CARD}: damaged: expected JSON with a `format`") from None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError(f"{folder / CARD}: damaged: format: expected a whole number from 1 on, got {version!r}")
    if version != FORMAT:
        raise ValueError(f"{folder}: written in format {version}; this version of regard reads format {FORMAT} alone")
    if not isinstance(card.get("task"), str):
        raise ValueError(f"{folder / CARD}: damaged: task: expected its name, got {card.get('task')!r}")
    return dict(card)


def read_labels(folder: Path, card: dict[str, Any]) -> list[str]:
    """Return the labels of a classifier's card."""
    labels = card.get("labels")
    if not isinstance(labels, list) or not labels or not all(isinstance(label, str) for label in labels):
        raise ValueError(f"{folder}: damaged: expected `labels` in {CARD}")
    return labels


def read_recipe(folder: Path) -> Recipe:
    """Return the recipe of a model. It was written whole: with a table missing, the file is damaged."""
    path = folder / RECIPE
    text = _text(path)
    recipe = from_toml(text, str(path))
    missing = [name for name in SECTIONS if f"[{name}]" not in text.splitlines()]
    if missing:
        raise ValueError(f"{path}: damaged: expected the tables {', '.join(SECTIONS)}, and {missing[0]} is missing")
    return recipe


def read_vocabularies(folder: Path) -> Vocabularies:
    if (folder / "tokenizer.json").is_file():
        both = _vocabulary(folder / "tokenizer.json")
        return Vocabularies(both, both)
    return Vocabularies(_vocabulary(folder / "source.json"), _vocabulary(folder / "target.json"))


def read_weights(folder: Path) -> dict[str, Tensor]:
    path = folder / WEIGHTS
    try:
        return dict(load_file(path))
    except FileNotFoundError:
        raise ValueError(f"{folder}: it has no {WEIGHTS}") from None
    except Exception as error:  # safetensors raises its own errors for damaged files
        raise ValueError(f"{path}: damaged: {error}") from None


def trained_weights(folder: Path, card: dict[str, Any]) -> dict[str, Tensor]:
    """Return the weights of a trained model: those with the best score on dev.

    Raise a ValueError if training stopped before the first validation; warn if it has not ended.
    """
    if not (folder / WEIGHTS).is_file() and "scores" not in card:
        if "ended" in card:
            ended = f"its training ended before the first validation ({card['ended']})"
            raise ValueError(f"{folder}: no model: {ended}; --overwrite begins anew")
        raise ValueError(
            f"{folder}: no model yet: its training stopped before the first validation; "
            f"`regard train … --out {folder} --resume` goes on"
        )
    if "ended" not in card:
        notice = (
            f"{folder}: its training has not ended: this is its best model so far; "
            f"`regard train … --out {folder} --resume` goes on"
        )
        warnings.warn(notice, RegardWarning, stacklevel=3)
    return read_weights(folder)


def _vocabulary(path: Path) -> Vocabulary:
    text = _text(path)
    try:
        return Vocabulary.from_json(text)
    except Exception as error:  # tokenizers raises bare exceptions
        raise ValueError(f"{path}: damaged: {error}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ValueError(f"{path.parent}: it has no {path.name}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: damaged: not UTF-8") from None
