"""A model's folder: all that is needed to use it, and nothing else.

    recipe.toml            what was trained, and how
    tokenizer.json         one vocabulary for both sides, or source.json and target.json
    model.safetensors      the weights, those with the best score on dev; not there before the first validation
    card.json              languages, data, versions, scores …; `format` says which version of this layout it is;
                           `ended` says why training ended, and is not there before
    log.jsonl              what happened in training
    training/              what resuming needs; may be deleted

Files are replaced atomically: a reader sees the old content or the new. No pickle is written or read. A folder may come
from a stranger: every file has a limit of its size, is a regular file of the folder, and is checked (docs/security.md).
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor

from regard.config.card import check_card
from regard.config.recipe import Recipe
from regard.config.recipe_text import SECTIONS, from_toml
from regard.runtime.reading import read_text_inside
from regard.runtime.tensor_file import TensorFile, open_tensors
from regard.runtime.warnings import RegardWarning
from regard.text.vocabulary import Vocabulary

FORMAT = 2
_NUMBERS = re.compile(r"\[\n\s+((?:[-+.\deE]+,?\s+)+)\]")  # a list of numbers, which a card has on one line
WEIGHTS, RECIPE, CARD, LOG, TRAINING = "model.safetensors", "recipe.toml", "card.json", "log.jsonl", "training"
MAX_CARD, MAX_RECIPE, MAX_TOKENIZER = 1 << 24, 1 << 16, 1 << 26  # bytes


@dataclass(frozen=True)
class Vocabularies:
    """The vocabularies of the two sides: one and the same object if they share it."""

    source: Vocabulary
    target: Vocabulary

    @property
    def joint(self) -> bool:
        return self.source is self.target


def write(path: Path, content: bytes | str) -> None:
    """Replace a file atomically: the new content is on the disk before it takes the name.

    If that fails, as on a full disk, the old file stays, and nothing else; the error names the file.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(path.name + ".new")
    try:
        temporary.unlink(missing_ok=True)  # what a killed run left, or a link: it must not be followed
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


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
    path = folder / CARD
    try:
        card = json.loads(read_text_inside(path, MAX_CARD))
        version = card["format"]
    except FileNotFoundError:
        raise ValueError(f"{folder}: not a model's folder: it has no {CARD}") from None
    except (json.JSONDecodeError, KeyError, TypeError, RecursionError):
        raise ValueError(f"{path}: damaged: expected JSON with a `format`") from None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError(f"{path}: damaged: format: expected a whole number from 1 on, got {version!r}")
    if version != FORMAT:
        raise ValueError(f"{folder}: written in format {version}; this version of regard reads format {FORMAT} alone")
    try:
        check_card(card)
    except ValueError as error:
        raise ValueError(f"{path}: damaged: {error}") from None
    return dict(card)


def read_labels(folder: Path, card: dict[str, Any]) -> list[str]:
    """Return the labels of a classifier's card."""
    if card.get("labels") is None:
        raise ValueError(f"{folder}: damaged: expected `labels` in {CARD}")
    return list(card["labels"])


def read_recipe(folder: Path) -> Recipe:
    """Return the recipe of a model. It was written whole: with a table missing, the file is damaged."""
    path = folder / RECIPE
    text = _text(path, MAX_RECIPE)
    recipe = from_toml(text, str(path))
    missing = [name for name in SECTIONS if f"[{name}]" not in text.splitlines()]
    if missing:
        raise ValueError(f"{path}: damaged: expected the tables {', '.join(SECTIONS)}, and {missing[0]} is missing")
    return recipe


def read_vocabularies(folder: Path) -> Vocabularies:
    if os.path.lexists(folder / "tokenizer.json"):
        both = _vocabulary(folder / "tokenizer.json")
        return Vocabularies(both, both)
    return Vocabularies(_vocabulary(folder / "source.json"), _vocabulary(folder / "target.json"))


@contextmanager
def trained_weights(folder: Path, card: dict[str, Any]) -> Iterator[TensorFile]:
    """Open the weights of a trained model: those with the best score on dev.

    Raise a ValueError if training stopped before the first validation; warn if it has not ended.
    """
    command = "tune" if "tuned_from" in card else "train"
    if not (folder / WEIGHTS).is_file() and "scores" not in card:
        if "ended" in card:
            ended = f"its training ended before the first validation ({card['ended']})"
            raise ValueError(f"{folder}: no model: {ended}; --overwrite begins anew")
        raise ValueError(
            f"{folder}: no model yet: its training stopped before the first validation; "
            f"`regard {command} … --out {folder} --resume` goes on"
        )
    if "ended" not in card:
        notice = (
            f"{folder}: its training has not ended: this is its best model so far; "
            f"`regard {command} … --out {folder} --resume` goes on"
        )
        warnings.warn(notice, RegardWarning, stacklevel=5)
    if not os.path.lexists(folder / WEIGHTS):
        raise ValueError(f"{folder}: it has no {WEIGHTS}")
    with open_tensors(folder / WEIGHTS) as weights:
        yield weights


def _vocabulary(path: Path) -> Vocabulary:
    text = _text(path, MAX_TOKENIZER)
    try:
        return Vocabulary.from_json(text)
    except Exception as error:  # tokenizers raises bare exceptions
        raise ValueError(f"{path}: damaged: {error}") from None


def _text(path: Path, max_bytes: int) -> str:
    try:
        return read_text_inside(path, max_bytes)
    except FileNotFoundError:
        raise ValueError(f"{path.parent}: it has no {path.name}") from None
