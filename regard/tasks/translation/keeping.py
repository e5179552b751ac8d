"""Translations of texts in which some things are not translated: what goes to the model, and what comes back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from regard.alignment.projection import Projection
from regard.alignment.restore import WordEdit, restore
from regard.config.folder import Vocabularies
from regard.look.trace import MarkedTerm, Side, Step, Trace
from regard.look.words import Span
from regard.text.keep import Keep
from regard.text.marked import MarkedText
from regard.text.normal import tidy
from regard.text.placeables import Part, joined

Replacement = tuple[int, int, str]  # start, end and the new text


def as_keep(keep: str | Keep) -> Keep:
    """Return the options of a text such as `numbers,markup`."""
    return Keep.parse(keep) if isinstance(keep, str) else keep


@dataclass(frozen=True)
class KeepingText:
    """A text, and what the model reads of it."""

    source: str  # the whole text, tidied
    marked: MarkedText

    @classmethod
    def of(cls, parts: Sequence[Part], vocabularies: Vocabularies, removed: Collection[int] = ()) -> KeepingText:
        """Return the text of the parts; `removed`: the words, counted from 0, that the model does not read."""
        placeholders = vocabularies.source.has_placeholders and vocabularies.target.has_placeholders
        return cls(tidy(joined(parts)), MarkedText.of(parts, placeholders, removed))

    def prefix(self, text: str) -> str:
        """Return the prefix of a translation as the model writes it: with the placeholders of the words in it."""
        for word in self.marked.words:
            stand_in = self.marked.plain[word.start : word.end]
            text = text.replace(word.placeable.text, stand_in, 1) if stand_in else text
        return text

    def restored(self, text: str, traces: Sequence[Trace]) -> tuple[list[Part], list[Trace]]:
        """Return the parts of a translation with everything in its place, and the traces with words for placeholders.

        What the model does not read, such as tags, is in no trace.
        """
        marked = self.marked
        if not (marked.words or marked.pairs or marked.points):
            return [text], list(traces)
        result = restore(self.marked, text, Projection.of(traces, self.marked.plain))
        return result.parts, self._traces(traces, result.edits)

    def _traces(self, traces: Sequence[Trace], edits: Sequence[WordEdit]) -> list[Trace]:
        plain = self.marked.plain
        own = [(word.start, word.end, word.placeable.text) for word in self.marked.words if word.start < word.end]
        shown = {plain[start:end]: text for start, end, text in reversed(own)}
        other = [(edit.start, edit.end, "" if edit.word is None else edit.word.placeable.text) for edit in edits]
        other = [each for each in other if each[0] < each[1]]
        rewritten, begin, target_begin = [], 0, 0
        for trace in traces:
            begin = max(begin, plain.find(trace.source.text, begin))
            target_end = target_begin + len(trace.target.text)
            changes = _within(own, begin, begin + len(trace.source.text)), _within(other, target_begin, target_end)
            source, target = map(rewritten_side, (trace.source, trace.target), changes)
            terms = [MarkedTerm(*map(_moved_range, (each.source, each.target), changes)) for each in trace.terms]
            steps = [Step(s.probability, [(_spelled(o, shown), p) for o, p in s.others]) for s in trace.steps]
            candidates = [replace(each, text=_spelled(each.text, shown)) for each in trace.candidates]
            same_words = len(target.text_words) == len(trace.confidence)
            parts = {"source": source, "target": target, "steps": steps, "candidates": candidates, "terms": terms}
            parts["confidence"] = trace.confidence if same_words else ()
            rewritten.append(replace(trace, **parts))  # type: ignore[arg-type]
            begin, target_begin = begin + len(trace.source.text), target_end + 1
        return rewritten


def _within(replacements: Iterable[Replacement], begin: int, end: int) -> list[Replacement]:
    """Return the replacements between two offsets, relative to the first."""
    return [(a - begin, b - begin, text) for a, b, text in replacements if begin <= a and b <= end]


def _spelled(text: str, shown: dict[str, str]) -> str:
    """Return a text with words in place of their placeholders."""
    for placeholder, word in shown.items():
        text = text.replace(placeholder, word)
    return text


def rewritten_side(side: Side, replacements: Sequence[Replacement]) -> Side:
    """Return a side with parts of its text replaced, in their order; its pieces stand for the new text."""
    text, begin = "", 0
    for start, end, new in replacements:
        text += side.text[begin:start] + new
        begin = end
    text += side.text[begin:]
    pieces = []
    for piece in side.pieces:
        start = _moved(piece.start, replacements, ends=False)
        end = max(start, _moved(piece.end, replacements, ends=True))
        pieces.append(Span(text[start:end], start, end))
    if side.ended:
        pieces[-1] = Span("", len(text), len(text))
    return replace(side, text=text, pieces=pieces)


def _moved_range(span: tuple[int, int], replacements: Sequence[Replacement]) -> tuple[int, int]:
    return _moved(span[0], replacements, ends=False), _moved(span[1], replacements, ends=True)


def _moved(offset: int, replacements: Sequence[Replacement], ends: bool) -> int:
    """Return where an offset, at which a piece starts or ends, is in the new text. What is inserted between two pieces
    belongs to neither; what replaces part of a piece belongs to it."""
    shift = 0
    for start, end, new in replacements:
        if end < offset or (end == offset and not (ends and start == end)):
            shift += len(new) - (end - start)
        elif start < offset < end:
            return start + shift + (len(new) if ends else 0)
    return offset + shift
