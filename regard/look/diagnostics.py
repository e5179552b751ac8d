"""What is odd about a trace: signs of words left out or said twice, found in the weights alone.

Coverage of a source word is Σ_t w_ts over the target words t (Tu et al. 2016): about 1 where words answer each other
one by one, near 0 for a word that nothing looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.look.trace import Span, Trace
from regard.text.boundaries import is_punctuation

MISSED = 0.2
"""coverage below which a word is likely left out"""
REPEATED = 2.5
"""coverage above which a word is likely said more than once"""
MEASURES = ("missed", "repeated", "entropy", "punctuation", "end")


@dataclass(frozen=True)
class Diagnosis:
    """Of one trace; shares are from 0 to 1."""

    entropy: float
    """bits, the mean over the target's words: 0 if each looks at one word only"""
    coverage: list[float]
    """of each source word, the end token last"""
    missed: list[str]
    """source words that were hardly looked at"""
    repeated: list[str]
    """source words that were looked at again and again"""
    punctuation: float
    """share of all weight that went to punctuation"""
    end: float
    """share that went to the end token"""

    def measure(self, name: str) -> float:
        """The larger, the odder."""
        if name not in MEASURES:
            raise ValueError(f"diagnose: expected one of {', '.join(MEASURES)}, got {name!r}")
        found = getattr(self, name)
        return float(len(found)) if isinstance(found, list) else float(found)


def diagnose(trace: Trace) -> Diagnosis:
    target, source, weights = trace.by_words()
    said = np.array([bool(word.text) for word in target], bool)  # the end token looks, too, but says nothing
    weights = weights[said].astype(np.float64)  # [target words, source words]
    coverage = weights.sum(0)
    total = max(coverage.sum(), 1e-12)
    marks = np.array([_is_mark(word) for word in source], bool)
    ends = np.array([not word.text for word in source], bool)
    content = ~marks & ~ends
    return Diagnosis(
        entropy=_entropy(weights),
        coverage=[round(float(value), 4) for value in coverage],
        missed=[word.text for word, value in _chosen(source, coverage, content) if value < MISSED],
        repeated=[word.text for word, value in _chosen(source, coverage, content) if value > REPEATED],
        punctuation=float(coverage[marks].sum() / total),
        end=float(coverage[ends].sum() / total),
    )


def _entropy(weights: np.ndarray) -> float:
    if not len(weights):
        return 0.0
    logs = np.log2(np.where(weights > 0, weights, 1))
    return float(-(weights * logs).sum(1).mean())


def _is_mark(word: Span) -> bool:
    return bool(word.text) and all(map(is_punctuation, word.text))


def _chosen(words: Sequence[Span], values: np.ndarray, which: np.ndarray) -> list[tuple[Span, float]]:
    return [(word, float(value)) for word, value, kept in zip(words, values, which, strict=True) if kept]


@dataclass(frozen=True)
class Overall:
    """Of many traces."""

    traces: int
    entropy: float
    """mean, bits"""
    with_missed: int
    """traces with a word that was hardly looked at"""
    with_repeated: int
    punctuation: float
    end: float

    def lines(self) -> list[str]:
        return [
            f"entropy       {self.entropy:6.2f}   bits a target word",
            f"missed        {self.with_missed:6,}   of {self.traces:,} with a source word of coverage below {MISSED}",
            f"repeated      {self.with_repeated:6,}   of {self.traces:,} with one above {REPEATED}",
            f"punctuation   {100 * self.punctuation:6.2f}   percent of all weight",
            f"end token     {100 * self.end:6.2f}   percent of all weight",
        ]


def overall(found: Sequence[Diagnosis]) -> Overall:
    if not found:
        raise ValueError("expected at least one trace to diagnose, got none")
    return Overall(
        len(found),
        float(np.mean([each.entropy for each in found])),
        sum(bool(each.missed) for each in found),
        sum(bool(each.repeated) for each in found),
        float(np.mean([each.punctuation for each in found])),
        float(np.mean([each.end for each in found])),
    )
