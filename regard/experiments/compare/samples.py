"""Sentences of dev for the page: what each kind makes of them, and its attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from regard.experiments.compare.comparison import Comparison
from regard.experiments.compare.results import KindResult
from regard.look.trace import Trace
from regard.metrics.significance import BootstrapScores
from regard.runtime.precision import Precision
from regard.tasks.registry import TRANSLATION, load_for

MAX_SENTENCES = 24
MAX_WORDS = 30  # words of a source; the grid of a longer one is hard to read beside others


@dataclass(frozen=True)
class SampleSentence:
    """A sentence of dev as the best run of each kind translates it."""

    source: str
    references: Sequence[str]
    traces: Sequence[Trace]  # of each trained kind, in the order of the comparison
    scores: Sequence[float]  # the chrF++ of each translation


def sample_sentences(
    comparison: Comparison,
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    device: str | None,
    precision: Precision,
) -> list[SampleSentence]:
    """Return sentences with their translations by every kind: those first whose chrF++ differs most between kinds."""
    rows = most_different(comparison.trained, sources, references)
    load = partial(load_for, TRANSLATION, device=device, precision=precision)
    answers = [load(kind.best_run.folder).answers([sources[row] for row in rows]) for kind in comparison.trained]
    samples = []
    for row, translations in zip(rows, zip(*answers, strict=True), strict=True):
        traces = [each.translations[0].traces for each in translations]
        if any(len(parts) != 1 for parts in traces):  # translated in several parts
            continue
        scoring = BootstrapScores([references[row]], samples=0)
        scores = [float(scoring.by_sentence([each.text])[0]) for each in translations]
        samples.append(SampleSentence(sources[row], references[row], [parts[0] for parts in traces], scores))
    return samples


def most_different(
    kinds: Sequence[KindResult], sources: Sequence[str], references: Sequence[Sequence[str]]
) -> list[int]:
    """Return the rows of dev with the largest differences in chrF++ between kinds, the largest first."""
    scoring = BootstrapScores(references, samples=0)
    scores = np.array([scoring.by_sentence(kind.best_run.hypotheses) for kind in kinds])
    spread = scores.max(0) - scores.min(0)
    long = [len(source.split()) > MAX_WORDS for source in sources]
    return sorted(range(len(sources)), key=lambda row: (long[row], -spread[row], row))[:MAX_SENTENCES]
