"""What a translator returns: the translations of a text with their attention and, if asked for, their confidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from regard.look.trace import Trace
from regard.tasks.translation.confidence import PartConfidence
from regard.tasks.translation.word_features import TranslatedPart
from regard.text.placeables import Part


@dataclass(frozen=True)
class Translation:
    """One translation of a text; those of the parts of a long text are joined."""

    text: str
    score: float  # higher is better: log-probability / length^`length_penalty`; with `mbr`, the expected chrF++
    log_probability: float
    traces: list[Trace]  # the attention of each part
    confidence: float | None = None  # if asked for: the expected fraction of right words
    content: Sequence[Part] = ()  # the text, and what of it was not translated

    @property
    def parts(self) -> list[TranslatedPart]:
        return [TranslatedPart(trace.source, trace.target) for trace in self.traces]

    def rated(self, source: str, by_part: Iterator[PartConfidence]) -> Translation:
        """Return the translation with the confidence of its parts: its own is their mean, weighted by their words.
        Without words it is right, with a confidence of 1, if there was no source."""
        rated = [next(by_part) for _ in self.traces]
        traces = [replace(trace, confidence=part.words) for trace, part in zip(self.traces, rated, strict=True)]
        words = sum(len(part.words) for part in rated)
        right = sum(part.fraction * len(part.words) for part in rated)
        return replace(self, traces=traces, confidence=right / words if words else float(not source))

    @property
    def word_confidence(self) -> list[tuple[str, float]]:
        """each word with the probability that it is right; empty unless asked for"""
        return [
            (word.text, value)
            for trace in self.traces
            for word, value in zip(trace.target.text_words, trace.confidence, strict=False)
        ]


@dataclass(frozen=True)
class Answer:
    """The translations of one text."""

    source: str
    translations: list[Translation]  # the best first
    notices: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.translations[0].text

    def noting_fewer_than(self, wanted: int) -> Answer:
        """Return the answer with a notice if it has fewer translations than `wanted`, unless there was no text."""
        if len(self.translations) >= wanted or not self.source:
            return self
        notice = f"different translations found: {len(self.translations)}, of {wanted} asked for"
        return replace(self, notices=[*self.notices, notice])


def joined(parts: Sequence[Sequence[Translation]]) -> list[Translation]:
    """Join the translations of the parts of a text rank by rank; a part with fewer of them repeats its last one."""
    translations = []
    for rank in range(max(map(len, parts))):
        chosen = [ranked[min(rank, len(ranked) - 1)] for ranked in parts]
        text = " ".join(each.text for each in chosen)
        total = sum(each.log_probability for each in chosen)
        mean = sum(each.score for each in chosen) / len(chosen)
        translations.append(Translation(text, mean, total, [each.traces[0] for each in chosen]))
    return distinct_texts(translations)


def distinct_texts(translations: Sequence[Translation]) -> list[Translation]:
    """Return the translations without those whose text occurred before."""
    by_text: dict[str, Translation] = {}
    for each in translations:
        by_text.setdefault(each.text, each)
    return list(by_text.values())
