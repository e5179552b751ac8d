"""Minimum-Bayes-risk decoding: the translation that is most like all the others that the model considers probable.

    ŷ = argmax_c Σ_r w_r u(c, r) / Σ_r w_r

Candidates c are samples and the hypotheses of a beam; pseudo-references r are the samples, each text with the number of
times w_r that it was drawn; u is the utility of a candidate given a reference (Eikema and Aziz 2020).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from regard.search.beam import beam
from regard.search.distinct import Wording, distinct
from regard.search.hypothesis import DecoderModel, Hypothesis, LengthLimit, Prefixes
from regard.search.seeded_samples import seeded_samples

Utility = Callable[[Sequence[str]], np.ndarray[Any, np.dtype[np.float64]]]
"""returns the utility [n, n] of each of n texts (rows) given each as the reference (columns)"""

MBR_TEMPERATURE = 0.5  # of the samples


@dataclass(frozen=True)
class RiskOptions:
    """The options of minimum-Bayes-risk decoding."""

    samples: int  # drawn for each sentence
    utility: Utility
    seed: int = 1
    width: int = 5  # the beam size
    temperature: float = MBR_TEMPERATURE


def minimum_risk(
    model: DecoderModel,
    source: Tensor,
    lengths: Tensor,
    limit: LengthLimit,
    wording: Wording,
    options: RiskOptions,
    best: int = 1,
    prefixes: Prefixes = None,
) -> list[list[Hypothesis]]:
    """Return the `best` candidates of each sentence with different texts, by descending expected utility, which is
    their score. source [B, S] of `lengths` [B]."""
    width = options.width
    ended = beam(model, source, lengths, limit, width=width, best=2 * width, prefixes=prefixes)  # all that ended
    drawn = seeded_samples(model, source, lengths, limit, options.samples, options.temperature, options.seed, prefixes)
    return [
        ranked_by_utility(own, hypotheses, wording, options.utility)[:best]
        for own, hypotheses in zip(drawn, ended, strict=True)
    ]


def ranked_by_utility(
    drawn: Sequence[Hypothesis], others: Sequence[Hypothesis], wording: Wording, utility: Utility
) -> list[Hypothesis]:
    """Return the candidates with different texts, samples and others, by their expected utility over the samples."""
    counts = Counter(wording.text(each.tokens) for each in drawn)
    by_probability = sorted([*drawn, *others], key=lambda each: -each.log_probability)  # the most probable segmentation
    candidates = distinct(by_probability, wording)
    texts = [wording.text(each.tokens) for each in candidates]
    weights = np.array([counts[text] for text in texts], np.float64)
    expected = utility(texts) @ (weights / weights.sum())
    order = np.argsort(-expected, kind="stable")
    return [replace(candidates[place], score=float(expected[place])) for place in order]
