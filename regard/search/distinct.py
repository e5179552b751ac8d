"""n-best lists of hypotheses with different texts.

Subwords can spell one text in many ways, and a model gives probability to several of them. An n-best list has each text
once: of the hypotheses with the same text only the one with the highest score is listed, with its own score and
log-probability, so that forced decoding of its tokens gives the same numbers. Probabilities are not summed over
segmentations, because a search finds only some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.search.beam import beam
from regard.search.hypothesis import DecoderModel, Hypothesis, LengthLimit, Prefixes
from regard.search.stepwise import sample

BEAM_FACTOR = 2  # the beam size of the second search for further texts, as a multiple of the first one's
MAX_DRAWS = 4  # samples drawn at most per text that is asked for


@dataclass(frozen=True)
class Wording:
    """How to tell whether token sequences, without start and end, have the same text."""

    text: Callable[[Sequence[int]], str]  # returns the text of a complete sequence
    surface: Callable[[Sequence[int]], Hashable]  # is equal for prefixes with the same text, whatever follows them


def n_best(
    model: DecoderModel,
    source: Tensor,
    lengths: Tensor,
    limit: LengthLimit,
    wording: Wording,
    best: int,
    prefixes: Prefixes = None,
    width: int = 5,
    penalty: float = 1.0,
) -> list[list[Hypothesis]]:
    """Return the `best` hypotheses of each sentence with different texts, best first; fewer where no more were found.

    The first is the one that `beam` of this width finds. Sentences whose beam has too few texts are searched again with
    a larger beam, which recombines the segmentations of a prefix. A text that scores higher there than the first
    search's best is left out, so that the best translation does not depend on `best`.
    """
    wider = BEAM_FACTOR * width
    ended = beam(model, source, lengths, limit, width=width, best=wider, penalty=penalty, prefixes=prefixes)
    by_sentence = [distinct(hypotheses, wording) for hypotheses in ended]
    incomplete = [row for row, hypotheses in enumerate(by_sentence) if len(hypotheses) < best]
    if incomplete:
        inputs, own = _select(source, lengths, prefixes, incomplete)
        surface, most = wording.surface, BEAM_FACTOR * wider
        second_search = beam(
            model, *inputs, limit, width=wider, best=most, penalty=penalty, prefixes=own, surface=surface
        )
        for row, hypotheses in zip(incomplete, second_search, strict=True):
            further = [each for each in hypotheses if _rank(each) >= _rank(by_sentence[row][0])]
            by_sentence[row] = distinct(sorted([*by_sentence[row], *further], key=_rank), wording)
    return [hypotheses[:best] for hypotheses in by_sentence]


def samples(
    model: DecoderModel,
    source: Tensor,
    lengths: Tensor,
    limit: LengthLimit,
    wording: Wording,
    best: int,
    prefixes: Prefixes = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> list[list[Hypothesis]]:
    """Draw samples until there are `best` different texts of each sentence; return them by descending score.

    After `best` draws, only sentences that lack texts are drawn again, at most `MAX_DRAWS` · `best` times in all.
    """
    by_sentence: list[list[Hypothesis]] = [[] for _ in lengths]
    rows = list(range(len(lengths)))
    for draw in range(MAX_DRAWS * best):
        if draw >= best:
            rows = [row for row in rows if len(by_sentence[row]) < best]
        if not rows:
            break
        inputs, own = _select(source, lengths, prefixes, rows)
        drawn = sample(model, *inputs, limit, temperature=temperature, top_k=top_k, top_p=top_p, prefixes=own)
        for row, hypothesis in zip(rows, drawn, strict=True):
            by_sentence[row] = distinct(sorted([*by_sentence[row], hypothesis], key=lambda x: -x.score), wording)
    return by_sentence


def _select(
    source: Tensor, lengths: Tensor, prefixes: Prefixes, rows: list[int]
) -> tuple[tuple[Tensor, Tensor], Prefixes]:
    """Return ((sources, lengths), prefixes) of some rows."""
    indices = torch.tensor(rows)
    own = None if prefixes is None else [prefixes[row] for row in rows]
    return (source[indices.to(source.device)], lengths[indices]), own


def distinct(ranked: Sequence[Hypothesis], wording: Wording) -> list[Hypothesis]:
    """Return the hypotheses without those whose text occurred before."""
    by_text: dict[str, Hypothesis] = {}
    for each in ranked:
        by_text.setdefault(wording.text(each.tokens), each)
    return list(by_text.values())


def _rank(hypothesis: Hypothesis) -> tuple[bool, float]:
    """Return the sort key of a hypothesis: finished ones before those cut off, then by descending score."""
    return not hypothesis.finished, -hypothesis.score
