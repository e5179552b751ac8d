"""Diagnostics of a trace: signs of omitted or repeated words, from the attention weights alone.

The coverage of a source word is Σ_t w_ts over the target words t (Tu et al. 2016): about 1 where words correspond one
to one, near 0 for a word that no target word attends to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.look.trace import Trace
from regard.text.boundaries import is_punctuation

MISSED = 0.2  # coverage below which a word was likely left out
REPEATED = 2.5  # coverage above which a word was likely translated more than once
MEASURES = ("missed", "repeated", "entropy", "punctuation", "end")


@dataclass(frozen=True)
class Diagnosis:
    """The diagnosis of one trace; fractions are from 0 to 1."""

    entropy: float  # bits, the mean over the target words: 0 if each attends to one word only
    coverage: list[float]  # of each source word, the end token last
    missed: list[str]  # source words with little attention
    repeated: list[str]  # source words with attention from many target words
    punctuation: float  # fraction of all weight on punctuation
    end: float  # fraction of all weight on the end token

    def measure(self, name: str) -> float:
        """Return a measure by its name, as a number; larger means more suspicious."""
        if name not in MEASURES:
            raise ValueError(f"diagnose: expected one of {', '.join(MEASURES)}, got {name!r}")
        value = getattr(self, name)
        return float(len(value)) if isinstance(value, list) else float(value)


def diagnose(trace: Trace) -> Diagnosis:
    """Return the diagnosis of a trace, from its mean attention between words."""
    target, source, weights = trace.by_words()
    has_text = np.array([bool(word.text) for word in target], bool)  # the end token attends, too, but adds no text
    weights = weights[has_text].astype(np.float64)  # [target words, source words]
    coverage = weights.sum(0)
    total = max(coverage.sum(), 1e-12)
    marks = np.array([bool(word.text) and all(map(is_punctuation, word.text)) for word in source], bool)
    ends = np.array([not word.text for word in source], bool)
    content = [(source[index].text, coverage[index]) for index in np.flatnonzero(~marks & ~ends).tolist()]
    logs = np.log2(np.where(weights > 0, weights, 1))
    return Diagnosis(
        entropy=float(-(weights * logs).sum(1).mean()) if len(weights) else 0.0,
        coverage=[round(float(value), 4) for value in coverage],
        missed=[word for word, value in content if value < MISSED],
        repeated=[word for word, value in content if value > REPEATED],
        punctuation=float(coverage[marks].sum() / total),
        end=float(coverage[ends].sum() / total),
    )


@dataclass(frozen=True)
class Overall:
    """The summary of the diagnoses of many traces."""

    traces: int
    entropy: float  # mean, bits
    with_missed: int  # traces with a source word of little attention
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


def overall(diagnoses: Sequence[Diagnosis]) -> Overall:
    """Return means and counts over the diagnoses of many traces."""
    if not diagnoses:
        raise ValueError("expected at least one trace to diagnose, got none")
    return Overall(
        len(diagnoses),
        float(np.mean([each.entropy for each in diagnoses])),
        sum(bool(each.missed) for each in diagnoses),
        sum(bool(each.repeated) for each in diagnoses),
        float(np.mean([each.punctuation for each in diagnoses])),
        float(np.mean([each.end for each in diagnoses])),
    )
