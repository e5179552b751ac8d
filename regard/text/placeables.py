"""Placeables: the parts of a text that are not translated, and come back exactly as they were.

A text is a list of parts: strings, which are translated, and placeables between them. A placeable is

    word     a number, an address, `{name}`: a word of the sentence
    open     the beginning of a pair, such as `<b>` or `**`
    close    its end
    point    what stands between words, such as `<br/>`
    break    where one text ends and another begins, such as a line end
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Role = Literal["word", "open", "close", "point", "break"]


@dataclass(frozen=True)
class Placeable:
    """A part of a text that is not translated."""

    text: str
    role: Role
    name: str = ""  # of a word, its kind; of a pair, what must be equal at both ends, such as the name of the tag

    def as_point(self) -> Placeable:
        return Placeable(self.text, "point", self.name)


Part = str | Placeable


def joined(parts: Iterable[Part]) -> str:
    """Return the text of the parts."""
    return "".join(part if isinstance(part, str) else part.text for part in parts)


def merged(parts: Iterable[Part]) -> list[Part]:
    """Return the parts without empty strings and with adjacent strings joined."""
    result: list[Part] = []
    for part in parts:
        if isinstance(part, str) and result and isinstance(result[-1], str):
            result[-1] += part
        elif part != "":
            result.append(part)
    return result


def paired(parts: Sequence[Part]) -> dict[int, int]:
    """Return the index of the closing part for that of each opening part. Pairs are nested: what opens or closes
    nothing, or crosses another pair, belongs to none."""
    pairs: dict[int, int] = {}
    stack: list[tuple[int, str]] = []
    for index, part in enumerate(parts):
        if isinstance(part, str):
            continue
        if part.role == "open":
            stack.append((index, part.name))
        elif part.role == "close":
            depth = next((depth for depth in reversed(range(len(stack))) if stack[depth][1] == part.name), None)
            if depth is not None:
                pairs[stack[depth][0]] = index
                del stack[depth:]
    return pairs
