"""Several hypotheses a sentence, each with a text of its own.

Subwords can spell one text in many ways, and a model gives probability to several of them. An n-best list is one of
texts: of the hypotheses with the same text the one with the highest score stands for all, and keeps its own score and
log-probability, so that forced decoding of its tokens gives the same numbers. Probabilities are not added up over
segmentations: a search meets only some of these.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.search.beam import beam
from regard.search.hypothesis import DecoderModel, Hypothesis, LengthLimit
from regard.search.stepwise import sample

WIDER = 2
"""how many times as wide the search is that looks for further texts"""
DRAWS = 4
"""samples that are drawn, at most, for each text that is asked for"""


@dataclass(frozen=True)
class Wording:
    """How tokens, without start and end, are read."""

    text: Callable[[Sequence[int]], str]
    """what a person reads"""
    surface: Callable[[Sequence[int]], Hashable]
    """equal for beginnings that read alike and will, whatever follows; segmentations of one text share it"""


def n_best(
    model: DecoderModel,
    source: Tensor,
    lengths: Tensor,
    limit: LengthLimit,
    wording: Wording,
    best: int,
    prefixes: Sequence[Sequence[int]] | None = None,
    width: int = 5,
    penalty: float = 1.0,
) -> list[list[Hypothesis]]:
    """Return the `best` hypotheses of each sentence with different texts, best first; fewer where no more were found.

    The first is the one that `beam` of this width finds. Sentences whose beam held too few texts are searched again,
    wider and with all segmentations of a beginning as one. Should that meet a text with a higher score than the first
    one's, it is left out: the best translation does not depend on how many are asked for.
    """
    plain = beam(
        model, source, lengths, limit, width=width, best=WIDER * width, penalty=penalty, prefixes=prefixes
    )  # all that ended
    by_sentence = [distinct(some, wording) for some in plain]
    lacking = [row for row, some in enumerate(by_sentence) if len(some) < best]
    if lacking:
        rows = torch.tensor(lacking)
        more = beam(
            model,
            source[rows.to(source.device)],
            lengths[rows],
            limit,
            width=WIDER * width,
            best=WIDER * WIDER * width,
            penalty=penalty,
            prefixes=None if prefixes is None else [prefixes[row] for row in lacking],
            surface=wording.surface,
        )
        for row, others in zip(lacking, more, strict=True):
            later = [each for each in others if _rank(each) >= _rank(by_sentence[row][0])]
            by_sentence[row] = distinct(sorted([*by_sentence[row], *later], key=_rank), wording)
    return [some[:best] for some in by_sentence]


def samples(
    model: DecoderModel,
    source: Tensor,
    lengths: Tensor,
    limit: LengthLimit,
    wording: Wording,
    best: int,
    prefixes: Sequence[Sequence[int]] | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> list[list[Hypothesis]]:
    """Draw until there are `best` different texts of each sentence; the highest score first.

    After `best` draws only sentences that lack texts are drawn again, `DRAWS` · `best` times in all at most.
    """
    by_sentence: list[list[Hypothesis]] = [[] for _ in lengths]
    rows = list(range(len(lengths)))
    for draw in range(DRAWS * best):
        if draw >= best:
            rows = [row for row in rows if len(by_sentence[row]) < best]
        if not rows:
            break
        some = torch.tensor(rows)
        drawn = sample(
            model,
            source[some.to(source.device)],
            lengths[some],
            limit,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            prefixes=None if prefixes is None else [prefixes[row] for row in rows],
        )
        for row, each in zip(rows, drawn, strict=True):
            by_sentence[row] = distinct(sorted([*by_sentence[row], each], key=lambda x: -x.score), wording)
    return by_sentence


def distinct(ranked: Sequence[Hypothesis], wording: Wording) -> list[Hypothesis]:
    """Leave only the first hypothesis of each text."""
    by_text: dict[str, Hypothesis] = {}
    for each in ranked:
        by_text.setdefault(wording.text(each.tokens), each)
    return list(by_text.values())


def _rank(hypothesis: Hypothesis) -> tuple[bool, float]:
    """Ended hypotheses before those cut off, then by score: lower comes first."""
    return not hypothesis.finished, -hypothesis.score
