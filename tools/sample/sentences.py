"""Pairs of sentences, and a choice among them that is the same everywhere."""

import hashlib
import unicodedata
from collections.abc import Iterable

Pair = tuple[str, str]


def statement(english: str, marathi: str) -> Pair:
    """A statement or command."""
    return english[0].upper() + english[1:] + ".", marathi + "."


def question(english: str, marathi: str) -> Pair:
    """A question."""
    return english[0].upper() + english[1:] + "?", marathi + "?"


def words(text: str) -> list[str]:
    """Lower-cased runs of letters and marks: Sita's -> sita, s."""
    letters = (char if unicodedata.category(char)[0] in "LM" else " " for char in unicodedata.normalize("NFC", text))
    return "".join(letters).lower().split()


def by_hash(texts: Iterable[str]) -> list[str]:
    """The distinct texts in the order of their SHA-256: arbitrary, yet the same on every machine."""
    return sorted(set(texts), key=lambda text: hashlib.sha256(text.encode()).digest())
