"""Translations (x, ŷ) of sources x by an ensemble, as further training pairs: sequence-level knowledge distillation
(Kim and Rush 2016).

The work is done in pieces, each a file, so that it can be interrupted and resumed at any moment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from regard.config.folder import write
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from regard.training.progress import Screen

PIECE = 2000  # texts per file


def translate_in_pieces(
    translator: Translator, texts: Sequence[str], search: Search, folder: Path, seed: int, screen: Screen
) -> list[str]:
    """Return the translations of the texts; pieces that stand in the folder already are not translated again."""
    folder.mkdir(parents=True, exist_ok=True)
    translations: list[str] = []
    for number, piece in enumerate(_pieces(texts)):
        screen.advance(len(translations), len(texts), "training texts are translated", "")
        path = folder / f"{number:05}.json"
        translations += _read(path, piece) or _translate_piece(translator, piece, search, path, seed + number)
    return translations


def _pieces(texts: Sequence[str]) -> Iterator[list[str]]:
    for first in range(0, len(texts), PIECE):
        yield list(texts[first : first + PIECE])


def _translate_piece(translator: Translator, texts: list[str], search: Search, path: Path, seed: int) -> list[str]:
    torch.manual_seed(seed)  # so that a piece does not depend on those before it
    translations = translator.translate(texts, search)
    write(path, json.dumps({"of": _digest(texts), "translations": translations}, ensure_ascii=False))
    return translations


def _read(path: Path, texts: list[str]) -> list[str] | None:
    """Return the translations of a piece; None: they are not there, damaged, or those of other texts."""
    if not path.is_file():
        return None
    try:
        piece = json.loads(path.read_text(encoding="utf-8"))
        translations = list(map(str, piece["translations"])) if piece["of"] == _digest(texts) else []
    except (ValueError, KeyError, TypeError, RecursionError):  # damaged
        return None
    return translations if len(translations) == len(texts) else None


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
