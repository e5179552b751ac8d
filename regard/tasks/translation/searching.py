"""The hypotheses of a batch of sources, by the search that the options ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from regard.metrics.pairwise_chrf import pairwise_chrf
from regard.search.beam import beam
from regard.search.constrained import constrained_beam
from regard.search.constraints import Constraint
from regard.search.distinct import Wording, distinct, n_best, samples
from regard.search.hypothesis import DecoderModel, Hypothesis, LengthLimit
from regard.search.minimum_risk import MBR_TEMPERATURE, RiskOptions, minimum_risk
from regard.search.stepwise import greedy
from regard.tasks.translation.read_source import ReadSource
from regard.tasks.translation.search_options import Search
from regard.tasks.translation.terms import begins_word
from regard.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class SearchBatch:
    """Sources that are searched together, and what their translations must have."""

    sources: Sequence[ReadSource]
    prefixes: list[list[int]] | None
    constraints: list[list[Constraint]] | None  # the terms of each, as many for all


def hypotheses(
    model: DecoderModel,
    inputs: tuple[torch.Tensor, torch.Tensor],
    given: SearchBatch,
    search: Search,
    limit: LengthLimit,
    target: Vocabulary,
    wording: Wording,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each source, best first. `inputs`: the padded sources [B, S] and their lengths [B]."""
    batch, lengths = inputs
    penalty, prefixes = search.length_penalty, given.prefixes
    if given.constraints is not None:
        options: dict[str, Any] = {"width": search.beam, "best": 2 * search.beam, "penalty": penalty}
        words = begins_word(target)
        ended = constrained_beam(model, batch, lengths, limit, given.constraints, words, prefixes=prefixes, **options)
        return [distinct(hypotheses, wording)[: search.n_best] for hypotheses in ended]
    if search.mbr:
        temperature = MBR_TEMPERATURE if search.temperature is None else search.temperature
        risk = RiskOptions(search.mbr, pairwise_chrf, search.seed, search.beam, temperature)
        return minimum_risk(model, batch, lengths, limit, wording, risk, search.n_best, prefixes)
    if search.sample:
        sampling = search.temperature or 1.0, search.top_k, search.top_p
        return samples(model, batch, lengths, limit, wording, search.n_best, prefixes, *sampling)
    if search.beam == 1:
        return [[each] for each in greedy(model, batch, lengths, limit, prefixes)]
    if search.n_best == 1:
        return beam(model, batch, lengths, limit, width=search.beam, penalty=penalty, prefixes=prefixes)
    return n_best(model, batch, lengths, limit, wording, search.n_best, prefixes, search.beam, penalty)
