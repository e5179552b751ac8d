"""SubRip subtitles (.srt): numbers and times stay, the texts are translated.

A subtitle of several lines is one text, and its translation gets as many lines; lines that begin with a dash are said
by different people, and each is a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import regex

from regard.text.formats.document import ParsedFile, Unit, has_letters, line_of
from regard.text.inline_markup import tags
from regard.text.placeables import Part, Placeable, joined, merged

_TIME = regex.compile(r"\s*\d+:\d{1,2}:\d{1,2}[,.]\d{1,3}\s*-->\s*\d+:\d{1,2}:\d{1,2}[,.]\d{1,3}.*")
_LINE = regex.compile(r"[^\n]*(?:\n|\Z)")
_STYLE = regex.compile(r"\{\\[^{}]*\}")
_DASHES = ("-", "–", "—", "‐")


def read(text: str) -> ParsedFile:
    """Return the document of subtitles; raise a ValueError for what are none."""
    lines = [match.span() for match in _LINE.finditer(text) if match[0]]
    times = [index for index, span in enumerate(lines) if _TIME.fullmatch(_content(text, span))]
    before = [index for index in range(times[0] if times else len(lines)) if _content(text, lines[index])]
    if len(before) == 1 and times and _is_number(_content(text, lines[before[0]])):
        before = []  # the number of the first subtitle
    wrong = [*before, *(i for i, span in enumerate(lines) if "-->" in text[slice(*span)] and i not in times)]
    if wrong:
        number = line_of(text, lines[min(wrong)][0])
        raise ValueError(f"line {number}: expected a number, then times such as 00:01:02,500 --> 00:01:04,000")
    units: list[Unit] = []
    for index, following in zip(times, (*times[1:], len(lines)), strict=True):
        last = following
        if following < len(lines) and _is_number(_content(text, lines[following - 1])) and following - 1 > index:
            last -= 1  # the number of the next subtitle
        units += _units(text, lines[index + 1 : last])
    return ParsedFile(text, tuple(units))


def _content(text: str, span: tuple[int, int]) -> str:
    return text[slice(*span)].strip("\ufeff\r\n\t ")


def _is_number(line: str) -> bool:
    return line.isascii() and line.isdigit()


def _units(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[Unit]:
    """Yield the units of a subtitle: its lines between blank ones, or each line if several people speak."""
    paragraph: list[tuple[int, int]] = []
    for span in (*lines, (0, 0)):
        if _content(text, span):
            paragraph.append(span)
            continue
        dialogue = any(_content(text, each).startswith(_DASHES) for each in paragraph[1:])
        for group in [[each] for each in paragraph] if dialogue else [paragraph] if paragraph else []:
            unit = _unit(text, group)
            if unit is not None:
                yield unit
        paragraph = []


def _unit(text: str, lines: Sequence[tuple[int, int]]) -> Unit | None:
    spans = []
    for start, end in lines:
        content = text[start:end]
        start += len(content) - len(content.lstrip())
        spans.append((start, start + len(content.strip())))
    dash = regex.match(r"[-–—‐]\s*", text[slice(*spans[0])])
    begin = spans[0][0] + (dash.end() if dash else 0)
    contents = [text[begin : spans[0][1]], *(text[slice(*span)] for span in spans[1:])]
    parts = _parts("\n".join(contents))
    line_end = "\r\n" if text[lines[0][0] : lines[0][1]].endswith("\r\n") else "\n"
    if not has_letters(parts):
        return None

    def write(translation: Sequence[Part]) -> str:
        one_line = " ".join(joined(translation).split()).replace("-->", "→")
        return line_end.join(_broken(one_line, len(lines)))

    return Unit(begin, spans[-1][1], tuple(parts), write)


def _parts(text: str) -> list[Part]:
    """Return the parts of a text; tags and styles such as {\\an8} are placeables."""
    matches = [match for group in tags(text) for match in group]
    matches += [(*match.span(), Placeable(match[0], "point", "style")) for match in _STYLE.finditer(text)]
    parts: list[Part] = []
    begin = 0
    for start, end, placeable in sorted(matches, key=lambda match: match[:2]):
        if start >= begin:
            parts += [text[begin:start], placeable]
            begin = end
    return merged([*parts, text[begin:]])


def _broken(text: str, count: int) -> list[str]:
    """Return a text in at most `count` lines of similar length, broken at spaces outside of tags."""
    spaces = [match.start() for match in regex.finditer(r" (?![^<]*>)", text)]
    lines, begin = [], 0
    for remaining in range(count, 1, -1):
        ideal = begin + (len(text) - begin) / remaining
        spaces = [space for space in spaces if space > begin]
        if not spaces:
            break
        nearest = min(spaces, key=lambda space: abs(space - ideal))
        lines.append(text[begin:nearest])
        begin = nearest + 1
    return [*lines, text[begin:]]
