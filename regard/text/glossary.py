"""A glossary: source terms and how they must be translated.

One term per line: `source TAB target`. Several forms of the target are separated by `|`, and the model chooses the one
that fits; lines with the same source add forms. `=` stands for the source as it is written in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from regard.text.boundaries import word_bounds
from regard.text.normal import tidy
from regard.text.pairs import read_lines

SAME = "="
MAX_TERM_CHARACTERS = 500


class Entry(NamedTuple):
    """A term of a glossary."""

    source: str
    forms: tuple[str, ...]  # of the target; `SAME`: the source as it is in the text


class Term(NamedTuple):
    """A term in a text: text[start:end], and the forms of which one must stand in the translation."""

    start: int
    end: int
    forms: tuple[str, ...]


Words = tuple[str, ...]


@dataclass(frozen=True)
class Glossary:
    """Terms, which are matched by whole words, the longest first.

    Case does not matter, unless the glossary has entries that differ in nothing else: then the one in the case of the
    text is taken, or else the first.
    """

    entries: tuple[Entry, ...]
    _by_words: dict[Words, list[Entry]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_words: dict[Words, list[Entry]] = {}
        for entry in self.entries:
            by_words.setdefault(_folded(word for word, _, _ in term_words(entry.source)), []).append(entry)
        object.__setattr__(self, "_by_words", by_words)

    @classmethod
    def of(cls, terms: Iterable[tuple[str, str | Sequence[str]]]) -> Glossary:
        """Return the glossary of (source, target) or (source, forms of the target)."""
        forms_of: dict[str, list[str]] = {}
        for source, target in terms:
            forms = [target] if isinstance(target, str) else list(target)
            tidied = tidy(source), [tidy(form) for form in forms]
            if not tidied[0] or not forms or not all(tidied[1]):
                raise ValueError(f"glossary: expected a source and a target term, got {source!r} and {target!r}")
            forms_of.setdefault(tidied[0], []).extend(form for form in tidied[1])
        return cls(tuple(Entry(source, tuple(dict.fromkeys(forms))) for source, forms in forms_of.items()))

    @classmethod
    def read(cls, path: str | Path) -> Glossary:
        """Read a glossary from a file; empty lines are skipped, any other without two columns is an error."""
        terms: list[tuple[str, list[str]]] = []
        for number, line in enumerate(read_lines(path), 1):
            if not line.strip():
                continue
            columns = [tidy(column) for column in line.split("\t")]
            if len(columns) < 2 or not columns[0] or not columns[1]:
                raise ValueError(f"{path}, line {number}: expected a source term, a TAB and its target, got {line!r}")
            if max(map(len, columns[:2])) > MAX_TERM_CHARACTERS:
                raise ValueError(f"{path}, line {number}: expected at most {MAX_TERM_CHARACTERS} characters a term")
            forms = [form for each in columns[1].split("|") if (form := each.strip())]
            if not forms:
                raise ValueError(f"{path}, line {number}: expected a target term, got {columns[1]!r}")
            terms.append((columns[0], forms))
        if not terms:
            raise ValueError(f"{path}: no terms; expected lines of a source term, a TAB and its target")
        return cls.of(terms)

    def terms(self, tidied: str) -> list[Term]:
        """Return the terms in a text, from left to right; an entry that occurs several times is listed once."""
        words = term_words(tidied)
        folded = _folded(word for word, _, _ in words)
        longest = max(map(len, self._by_words))
        terms: dict[Entry, Term] = {}
        place = 0
        while place < len(words):
            for count in range(min(longest, len(words) - place), 0, -1):
                entries = self._by_words.get(folded[place : place + count])
                if entries:
                    start, end = words[place][1], words[place + count - 1][2]
                    entry = next((each for each in entries if each.source == tidied[start:end]), entries[0])
                    forms = tuple(tidied[start:end] if form == SAME else form for form in entry.forms)
                    terms.setdefault(entry, Term(start, end, forms))
                    place += count
                    break
            else:
                place += 1
        return list(terms.values())


def term_words(tidied: str) -> list[tuple[str, int, int]]:
    """Return the words of a text with their offsets; where words have no spaces between them, each character."""
    bounds = word_bounds(tidied, list(range(len(tidied) + 1)))
    return [(tidied[start:end], start, end) for start, end in bounds if end > start]


def _folded(words: Iterable[str]) -> Words:
    return tuple(word.casefold() for word in words)
