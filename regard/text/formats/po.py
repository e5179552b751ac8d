"""Catalogues of gettext (.po): messages without a translation get one; the header and all others stay.

A translation that equals the message is left empty, which means the same to gettext.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import regex

from regard.text.formats.document import ParsedFile, Unit, has_letters, line_of, lines_as_parts
from regard.text.placeables import Part, joined

_ENTRY = regex.compile(
    r'(?P<key>msgctxt|msgid_plural|msgid|msgstr(?:\[[0-9]+\])?)?[ \t]*(?P<string>"(?:[^"\\\n]|\\[^\n])*")[ \t]*\r?'
)
_LINE = regex.compile(r"[^\n]*(?:\n|\Z)")
_ESCAPE = regex.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]+)|(.))", regex.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


@dataclass
class _Entry:
    """The strings of a message by their keyword, and where those of the translations are."""

    strings: dict[str, str] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def is_translated(self) -> bool:
        return any(key.startswith("msgstr") for key in self.strings)

    def expects(self, key: str) -> bool:
        """Return whether a message that has these strings can go on with this one."""
        if key in self.strings:
            return False
        if key in ("msgctxt", "msgid"):
            return not self.strings.keys() - {"msgctxt"}
        needed = "msgid" if key in ("msgid_plural", "msgstr") else "msgid_plural"
        return needed in self.strings and (key.startswith("msgstr[") or not self.is_translated)


def read(text: str) -> ParsedFile:
    """Return the document of a catalogue; raise a ValueError for what is none."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    return ParsedFile(text, tuple(unit for entry in _entries(text) for unit in _units(entry, line_end)))


def _entries(text: str) -> Iterator[_Entry]:
    """Yield the messages; a ValueError names the first line that belongs to none."""
    entry, key = _Entry(), ""
    for line in _LINE.finditer(text, len(text) - len(text.removeprefix("\ufeff"))):
        content = line[0].strip()
        if not content or content.startswith("#"):
            key = ""
            continue
        match = _ENTRY.fullmatch(line[0].rstrip("\n").lstrip(" \t"))
        key = (match["key"] or key) if match is not None else ""
        if match is not None and match["key"] in ("msgctxt", "msgid") and entry.is_translated:
            yield entry
            entry = _Entry()
        if match is None or not key or (match["key"] and not entry.expects(key)):
            expected = "a message of gettext: msgctxt, msgid, msgid_plural, msgstr, in this order"
            raise ValueError(f"line {line_of(text, line.start())}: expected {expected}, got {content[:40]!r}")
        end = line.start() + line[0].rindex('"') + 1
        entry.strings[key] = entry.strings.get(key, "") + _unescaped(match["string"][1:-1])
        entry.places[key] = entry.places.get(key, (line.start() + line[0].index('"'), end))[0], end
    if entry.strings and not entry.is_translated:
        raise ValueError(f"line {line_of(text, len(text))}: expected msgstr for the last message")
    if entry.strings:
        yield entry


def _units(entry: _Entry, line_end: str) -> Iterator[Unit]:
    """Yield the translations of a message that are empty. The header is the message without an id."""
    if not entry.strings.get("msgid"):
        return
    for key, place in entry.places.items():
        if not key.startswith("msgstr") or entry.strings[key]:
            continue
        plural = key not in ("msgstr", "msgstr[0]")
        message = entry.strings.get("msgid_plural" if plural else "msgid", entry.strings["msgid"])
        parts = lines_as_parts(message)
        if has_letters(parts):
            yield Unit(*place, parts, lambda translation: _written(translation, line_end))


def _written(translation: Sequence[Part], line_end: str) -> str:
    """Return a string in quotation marks; one of several lines begins on the next line, as gettext writes it."""
    text = joined(translation)
    lines = [line for line in regex.split(r"(?<=\n)", text) if line]
    literals = [f'"{_escaped(line)}"' for line in lines]
    return literals[0] if len(literals) == 1 else line_end.join(['""', *literals])


def _escaped(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"'} | {letter: "\\" + name for name, letter in _LETTERS.items()}
    return "".join(escapes.get(letter, letter) for letter in text)


def _unescaped(text: str) -> str:
    def letter(match: regex.Match[str]) -> str:
        octal, hexadecimal, other = match.groups()
        if octal or hexadecimal:
            return chr(int(octal or hexadecimal, 8 if octal else 16) % 256)
        return _LETTERS.get(other, other)

    return _ESCAPE.sub(letter, text)
