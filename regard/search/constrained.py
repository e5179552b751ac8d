"""Beam search whose outputs contain given terms, in the places that the model gives them.

At every step a free hypothesis may begin any term that it lacks; once begun, a term is completed. Hypotheses that have
begun different numbers of terms do not compete: each number has slots of its own, a bank (Post and Vilar 2018). Without
banks, those that lack a term would win until it is too late. A hypothesis ends only when it has all terms.

Hypotheses are pruned by

    Σ log p(free tokens) + Σ over terms [log p(first token) + λ log a]

where a is the attention to the term's words in the source when the term began. The further tokens of a term are given,
and cost nothing: otherwise a term that has just begun would always displace one that is nearly complete. Those that
have ended are ranked as by any beam search, by log p(y) / |y|^α of all their tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from regard.search.beam import BeamSearch
from regard.search.constraints import ROOT, Automaton, Constraint, Edge
from regard.search.hypothesis import DecoderModel, Hypothesis, LengthLimit, Prefixes
from regard.search.log_probs import log_probs, sentence_chunks, top_k
from regard.text.vocabulary import END

BANK_WIDTH = 2  # slots per number of terms
MAX_SLOTS = 24  # of a sentence, unless it has more terms
MAX_TERMS = 60  # of a sentence: their bits fit into an integer
ATTENTION_WEIGHT = 0.5  # λ
MIN_ATTENTION = 0.01  # less attention to a term's source counts as this much


@torch.no_grad()
def constrained_beam(
    model: DecoderModel,
    source: Tensor,
    lengths: Tensor,
    limit: LengthLimit,
    constraints: Sequence[Sequence[Constraint]],
    begins_word: Tensor,
    *,
    width: int = 5,
    best: int = 1,
    penalty: float = 1.0,
    prefixes: Prefixes = None,
) -> list[list[Hypothesis]]:
    """Return the `best` hypotheses of each sentence that contain its terms, best first.

    source [B, S] of `lengths` [B]; `constraints`: the terms of each sentence, one at least; `begins_word` [V]: the
    tokens that may follow a term, which is a word or several. `prefixes` as for `beam`.
    """
    banks = max(map(len, constraints)) + 1
    slots = max(width, banks, min(BANK_WIDTH * banks, MAX_SLOTS))
    search = _ConstrainedBeam(model, source, lengths, limit, slots, penalty, prefixes, None)
    search.constrain(constraints, begins_word)
    while search.is_active:
        search.step()
    return search.results(best)


@dataclass(frozen=True)
class _States:
    """The states of hypotheses, each [B', n]."""

    nodes: np.ndarray
    begun: np.ndarray  # the terms that were begun, as bits
    ranks: np.ndarray  # what they are pruned by
    at_word_end: np.ndarray  # whether the last token completed a term, so that a new word must follow

    def take(self, places: np.ndarray) -> _States:
        """Return the states at places [B', k]."""
        return _States(*(np.take_along_axis(getattr(self, each.name), places, 1) for each in fields(self)))

    def keep(self, rows: np.ndarray) -> _States:
        """Return the states of some sentences."""
        return _States(*(getattr(self, each.name)[rows] for each in fields(self)))


@dataclass(frozen=True)
class _Candidates:
    """All extensions of the hypotheses of each sentence, each [B', n]."""

    parents: np.ndarray
    tokens: np.ndarray
    log_probabilities: np.ndarray  # of the whole extended hypothesis
    states: _States


class _ConstrainedBeam(BeamSearch):
    """A beam search that also keeps the state of every hypothesis."""

    def constrain(self, constraints: Sequence[Sequence[Constraint]], begins_word: Tensor) -> None:
        """Require terms of each sentence; maximum lengths get room for them."""
        self._automata, self._constraints = [Automaton.of(terms) for terms in constraints], constraints
        self._begins_word = begins_word.to(self._device)
        self._terms = np.array([len(terms) for terms in constraints])
        self._max_lengths = self._max_lengths + np.array([automaton.longest for automaton in self._automata])
        first = np.zeros((len(constraints), 1), np.int64)
        self._states = _States(first + ROOT, first, first.astype(np.float64), first.astype(bool))
        self._capturable = False  # states are on the host

    def _enough(self) -> np.ndarray:
        return np.asarray(np.maximum(2, self._quotas()))

    def _quotas(self) -> np.ndarray:
        """Return the slots of each bank but the last, which has the rest too, [B']."""
        return np.asarray(self._width // (self._terms[self._sentences] + 1))

    def _drop_finished(self) -> None:
        self._states = self._states.keep(self._active)
        super()._drop_finished()

    def _choose(
        self, logits: Tensor, weights: Tensor, scores: Tensor
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, Tensor, Tensor]]:
        options = self._options(logits.shape[1])
        free, tokens, forced = self._log_probabilities(logits, options)
        attention = weights.float().mean((2, 3)).cpu().numpy()  # [B', k, S]
        candidates = self._candidates(free, tokens, forced, options, attention, scores.cpu().numpy())
        places, chosen = self._select(candidates)  # [B', 2k]
        half = places.shape[1] // 2
        self._states = candidates.states.take(places[:, half:])
        totals = np.where(chosen, np.take_along_axis(candidates.log_probabilities, places, 1), -np.inf)
        parts = (*(np.take_along_axis(each, places, 1) for each in (candidates.parents, candidates.tokens)), totals)
        parents, extended, log_probabilities = (torch.from_numpy(part).to(self._device) for part in parts)
        scores = log_probabilities.float()
        continuing = torch.arange(half, 2 * half, device=self._device).expand(len(places), -1)
        output = (parents, extended, scores, continuing, weights.float())
        return output, (parents[:, half:], extended[:, half:], scores[:, half:])

    # The extensions

    def _options(self, slots: int) -> list[list[Sequence[Edge]]]:
        """Return the edges that each hypothesis may take: to continue its term, or to begin one."""
        first = self._time == 0
        forced = self._time < (max(map(len, self._prefixes)) if self._prefixes is not None else 0)
        options: list[list[Sequence[Edge]]] = []
        for row, sentence in enumerate(self._sentences.tolist()):
            automaton = self._automata[sentence]
            own: list[Sequence[Edge]] = []
            for slot in range(slots):
                node, begun = int(self._states.nodes[row, slot]), int(self._states.begun[row, slot])
                edges = automaton.edges[node]
                if node == ROOT:
                    edges = [] if forced else [*edges, *(automaton.initial if first else [])]
                    edges = [edge for edge in edges if not begun >> edge.term & 1]
                own.append(edges)
            options.append(own)
        return options

    def _log_probabilities(
        self, logits: Tensor, options: list[list[Sequence[Edge]]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return log-probabilities of the best free tokens [B', k, n], these tokens, and log-probabilities of the
        tokens of `options` [B', k, m]."""
        most = max(1, max(len(edges) for row in options for edges in row))
        table = np.zeros((*logits.shape[:2], most), np.int64)
        for row, each in enumerate(options):
            for slot, edges in enumerate(each):
                table[row, slot, : len(edges)] = [edge.token for edge in edges]
        wanted = torch.from_numpy(table).to(self._device)
        unfinished, inside, at_word_end = (torch.from_numpy(each).to(self._device) for each in self._restrictions())
        parts = []
        for rows, part in sentence_chunks(logits):
            values = log_probs(part, self._time >= self._min_length)
            of_options = values.gather(-1, wanted[rows])
            if self._prefixes is not None:
                self._force_prefix(values, self._sentences[rows])
            values[..., END].masked_fill_(unfinished[rows], -torch.inf)
            values.masked_fill_(at_word_end[rows][..., None] & ~self._begins_word, -torch.inf)
            values.masked_fill_(inside[rows][..., None], -torch.inf)
            parts.append((*top_k(values, min(2 * self._width, values.shape[-1])), of_options))
        free, tokens, forced = (torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True))
        return free, tokens, forced

    def _restrictions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return, for each hypothesis, whether it lacks terms, is inside one, and has just completed one, [B', k]."""
        states, sentences = self._states, self._sentences
        lacking = states.begun != ((1 << self._terms[sentences]) - 1)[:, None]
        complete = np.zeros(states.nodes.shape, bool)
        for row, sentence in enumerate(sentences.tolist()):
            complete[row] = np.asarray(self._automata[sentence].complete)[states.nodes[row]]
        return lacking, ~complete, states.at_word_end | (complete & (states.nodes != ROOT))

    def _candidates(
        self,
        free: np.ndarray,
        tokens: np.ndarray,
        forced: np.ndarray,
        options: list[list[Sequence[Edge]]],
        attention: np.ndarray,
        scores: np.ndarray,
    ) -> _Candidates:
        """Return all extensions: by free tokens, then by those of the options."""
        rows, slots, count = free.shape
        most = forced.shape[-1]
        before = self._states
        shape = (rows, slots, count + most)
        extended = np.concatenate([tokens, np.zeros((rows, slots, most), tokens.dtype)], 2)
        totals = np.full(shape, -np.inf)
        totals[..., :count] = scores[..., None] + free
        ranks = np.full(shape, -np.inf)
        ranks[..., :count] = before.ranks[..., None] + free
        nodes, at_word_end = np.full(shape, ROOT), np.zeros(shape, bool)
        begun = np.broadcast_to(before.begun[..., None], shape).copy()
        for row, each in enumerate(options):
            constraints = self._constraints[int(self._sentences[row])]
            for slot, edges in enumerate(each):
                if not edges or not np.isfinite(scores[row, slot]):
                    continue
                values = forced[row, slot, : len(edges)].astype(np.float64)
                costs = self._costs(int(before.nodes[row, slot]), edges, values, constraints, attention[row, slot])
                here = slice(count, count + len(edges))
                extended[row, slot, here] = [edge.token for edge in edges]
                totals[row, slot, here] = scores[row, slot] + values
                ranks[row, slot, here] = before.ranks[row, slot] + costs
                nodes[row, slot, here] = [edge.node for edge in edges]
                at_word_end[row, slot, here] = [edge.node == ROOT for edge in edges]
                begun[row, slot, here] |= [1 << edge.term for edge in edges]
        parents = np.broadcast_to(np.arange(slots)[:, None], shape)
        flat = [values.reshape(rows, -1) for values in (parents, extended, totals, nodes, begun, ranks, at_word_end)]
        return _Candidates(flat[0], flat[1], flat[2], _States(*flat[3:]))

    @staticmethod
    def _costs(
        node: int,
        edges: Sequence[Edge],
        values: np.ndarray,
        constraints: Sequence[Constraint],
        attention: np.ndarray,
    ) -> np.ndarray:
        """Return what the edges add to the rank of a hypothesis at a node. `values`: their log-probabilities."""
        if node != ROOT:  # the choice between the forms of a term
            return np.asarray(values - np.logaddexp.reduce(values))
        attended = [attention[list(constraints[edge.term].positions)].sum() for edge in edges]
        return np.asarray(values + ATTENTION_WEIGHT * np.log(np.maximum(attended, MIN_ATTENTION)))

    # The choice

    def _select(self, candidates: _Candidates) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of 2k candidates, fewer if there are not as many, and which of them are chosen: the first
        half end, the others continue."""
        states, sentences = candidates.states, self._sentences
        ranks = np.where(np.isfinite(candidates.log_probabilities), states.ranks, -np.inf)
        banks, terms, quotas = _bits(states.begun), self._terms[sentences][:, None], self._quotas()[:, None]
        quota = np.where(banks == terms, self._width - quotas * terms, quotas)
        is_end = candidates.tokens == END
        ends = np.where(is_end & (_positions(banks, ranks) < quota), ranks, -np.inf)
        complete = (banks == terms) & (states.nodes == ROOT) & np.isfinite(ranks)
        at_max_length = (self._time + 1 >= self._max_lengths[sentences])[:, None]
        lost = at_max_length & complete.any(1, keepdims=True) & ~complete  # would be cut off without all terms
        others = np.where(is_end | lost, -np.inf, ranks)
        in_bank = _positions(banks, others) < quota
        # The banks first; slots that one of them leaves empty go to the best of the others.
        order = np.lexsort((-others, ~in_bank), axis=1)[:, : self._width]
        by_rank = np.argsort(-np.take_along_axis(others, order, 1), axis=1, kind="stable")
        ending, continuing = np.argsort(-ends, axis=1)[:, : self._width], np.take_along_axis(order, by_rank, 1)
        values = [np.take_along_axis(ends, ending, 1), np.take_along_axis(others, continuing, 1)]
        return np.concatenate([ending, continuing], 1), np.isfinite(np.concatenate(values, 1))


def _bits(values: np.ndarray) -> np.ndarray:
    """Return the number of bits that are set."""
    return sum((values >> bit & 1 for bit in range(int(values.max()).bit_length())), np.zeros_like(values))


def _positions(banks: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Return the position of each candidate among those of its bank, by descending rank, [B', n]."""
    order = np.lexsort((-ranks, banks), axis=1)
    sizes = (banks[:, :, None] == np.arange(banks.max() + 1)).sum(1)  # [B', banks]
    starts = np.cumsum(sizes, 1) - sizes
    sorted_banks = np.take_along_axis(banks, order, 1)
    positions = np.empty_like(banks)
    in_order = np.arange(banks.shape[1]) - np.take_along_axis(starts, sorted_banks, 1)
    np.put_along_axis(positions, order, in_order, 1)
    return positions
