"""The segments of a document: what a translator gets one by one, and how its translations go back into units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from regard.text.formats.document import ParsedFile, Unit, has_letters
from regard.text.keep import Keep
from regard.text.placeables import Part, merged

Segment = list[Part]


def segments(document: ParsedFile, keep: Keep) -> list[Segment]:
    """Return the segments of all units: the parts between breaks, without the white space around them."""
    return [core for unit in document.units for _, core, _ in _cores(unit, keep) if has_letters(core)]


def with_segments(document: ParsedFile, keep: Keep, translations: Sequence[Segment]) -> list[Segment]:
    """Return the parts of all units with translated segments, in the order of `segments`."""
    remaining = iter(translations)
    return [
        merged(
            part
            for before, core, after in _cores(unit, keep)
            for part in (*before, *(_stripped(next(remaining))[1] if has_letters(core) else core), *after)
        )
        for unit in document.units
    ]


def _cores(unit: Unit, keep: Keep) -> Iterator[tuple[Segment, Segment, Segment]]:
    """Yield the parts between breaks, as (white space before them, the parts, white space and the break after them)."""
    segment: Segment = []
    for part in unit.parts:
        if isinstance(part, str) or part.role != "break":
            segment.append(part)
            continue
        before, core, after = _stripped(segment)
        yield before, keep.of_parts(core), [*after, part]
        segment = []
    before, core, after = _stripped(segment)
    yield before, keep.of_parts(core), after


def _stripped(segment: Sequence[Part]) -> tuple[Segment, Segment, Segment]:
    """Return (white space before, the parts without it, white space after them)."""
    core = list(segment)
    before: Segment = []
    after: Segment = []
    if core and isinstance(core[0], str):
        stripped = core[0].lstrip()
        before, core[0] = [core[0][: len(core[0]) - len(stripped)]], stripped
    if core and isinstance(core[-1], str):
        stripped = core[-1].rstrip()
        after, core[-1] = [core[-1][len(stripped) :]], stripped
    return before, core, after
