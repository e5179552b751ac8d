"""Greedy decoding and sampling: one hypothesis per sentence, one token after another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from regard.runtime.determinism import cumulative_sum
from regard.runtime.precision import check_finite
from regard.search import graph_replay
from regard.search.beam import beam
from regard.search.hypothesis import DecoderModel, Hypothesis, LengthLimit, Prefixes
from regard.search.log_probs import log_probs, sentence_chunks
from regard.search.log_probs import top_k as largest
from regard.text.vocabulary import END, START

Choose = Callable[[Tensor, np.ndarray, int], Tensor]  # log-probabilities [n, V], sentences [n], step → tokens [n]


def greedy(
    model: DecoderModel, source: Tensor, lengths: Tensor, limit: LengthLimit, prefixes: Prefixes = None
) -> list[Hypothesis]:
    """Take the most probable token at every step. source [B, S] of `lengths` [B]."""
    if source.is_cuda or graph_replay.can_replay(source.device):  # as a beam of one, whose steps can be replayed
        return [one for (one,) in beam(model, source, lengths, limit, width=1, prefixes=prefixes)]
    return _decode(model, source, lengths, limit, _most_probable, prefixes)


def _most_probable(log_probabilities: Tensor, _sentences: np.ndarray, _step: int) -> Tensor:
    return torch.from_numpy(log_probabilities.numpy().argmax(-1))  # several times as fast as torch's


def sample(
    model: DecoderModel,
    source: Tensor,
    lengths: Tensor,
    limit: LengthLimit,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    uniforms: Tensor | None = None,
    prefixes: Prefixes = None,
) -> list[Hypothesis]:
    """Draw a token from softmax(logits / temperature) at every step.

    `top_k` restricts it to the k most probable tokens, `top_p` to the smallest set of most probable tokens whose
    probabilities sum to at least p (nucleus sampling, Holtzman et al. 2020). `generator` may be of another device than
    the model: it draws there. With `uniforms` [B, steps], numbers in [0, 1) that were drawn before, nothing is drawn,
    and a sample does not depend on the other sentences of the batch.
    """

    def choose(log_probabilities: Tensor, sentences: np.ndarray, step: int) -> Tensor:
        tokens = None
        if top_k is not None and top_k < log_probabilities.shape[-1]:
            log_probabilities, tokens = largest(log_probabilities, top_k)
        # Relative to the highest, so that no temperature makes possible tokens infinite.
        scaled = (log_probabilities - log_probabilities.amax(-1, keepdim=True)).double() / temperature
        probabilities = torch.softmax(scaled, -1)
        if top_p is not None:
            probabilities = nucleus(probabilities, top_p)
        if uniforms is None:
            check_finite(probabilities.sum(-1).tolist())  # multinomial has an error of its own, on a GPU a fatal one
            device = probabilities.device if generator is None else generator.device
            drawn = torch.multinomial(probabilities.to(device), 1, generator=generator).to(probabilities.device)
        else:
            drawn = inverse_cdf(probabilities, uniforms[torch.from_numpy(sentences), step])
        return (drawn if tokens is None else tokens.gather(-1, drawn))[:, 0]

    return _decode(model, source, lengths, limit, choose, prefixes)


def nucleus(probabilities: Tensor, p: float) -> Tensor:
    """Set probabilities [..., V] to 0 outside the smallest set of largest ones that sum to at least p."""
    ordered, places = probabilities.sort(-1, descending=True)
    before = cumulative_sum(ordered) - ordered  # the sum over the more probable tokens
    return torch.zeros_like(probabilities).scatter(-1, places, ordered.masked_fill(before >= p, 0))


def inverse_cdf(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Return the tokens [n, 1] at which the cumulative probabilities [n, V] first exceed uniform numbers [n]."""
    cumulative = cumulative_sum(probabilities)
    thresholds = uniforms.to(cumulative)[:, None] * cumulative[:, -1:]
    return torch.searchsorted(cumulative, thresholds, right=True).clamp(max=probabilities.shape[-1] - 1)


@torch.no_grad()
def _decode(
    model: DecoderModel, source: Tensor, lengths: Tensor, limit: LengthLimit, choose: Choose, prefixes: Prefixes
) -> list[Hypothesis]:
    """Decode one hypothesis per sentence; finished sentences leave the batch."""
    source_lengths = lengths.tolist()
    max_lengths = limit.max_lengths(source_lengths, prefixes)
    # For each sentence and step: token, log-probability, attention weights.
    outputs: list[list[tuple[int, float, np.ndarray]]] = [[] for _ in source_lengths]
    state, tokens = model.start(source, lengths), torch.full((len(outputs), 1), START, device=source.device)
    sentences, time = np.arange(len(outputs)), 0
    while len(sentences):
        logits, weights, state = model.step(state, tokens)
        parts = [
            _next_tokens(log_probs(part, time >= limit.shortest), choose, prefixes, sentences[rows], time)
            for rows, part in sentence_chunks(logits[:, 0])
        ]
        chosen, gained = (torch.cat(part) for part in zip(*parts, strict=True))  # [B']
        gains = gained.tolist()
        rows_seen = weights[:, 0].float().cpu().numpy()
        for row, (sentence, token) in enumerate(zip(sentences.tolist(), chosen.tolist(), strict=True)):
            outputs[sentence].append((token, gains[row], rows_seen[row, ..., : source_lengths[sentence]]))
        time += 1
        active = (chosen != END).cpu().numpy() & (time < max_lengths[sentences])
        tokens = chosen[:, None]
        if not active.all():
            rows = torch.from_numpy(np.flatnonzero(active)).to(source.device)
            state, tokens, sentences = state.keep(rows), tokens[rows], sentences[active]
    return [_hypothesis(*map(list, zip(*steps, strict=True))) for steps in outputs]


def _hypothesis(tokens: list[int], log_probabilities: list[float], weights: list[np.ndarray]) -> Hypothesis:
    total, finished = sum(log_probabilities), tokens[-1] == END
    return Hypothesis(tokens[:-1] if finished else tokens, total, total / len(tokens), finished, np.stack(weights, 2))


def _next_tokens(
    log_probabilities: Tensor, choose: Choose, prefixes: Prefixes, rows: np.ndarray, time: int
) -> tuple[Tensor, Tensor]:
    """Return (tokens, their log-probabilities), [n], for log-probabilities [n, V] of the sentences `rows`."""
    chosen = choose(log_probabilities, rows, time)
    if prefixes is not None:  # their tokens at this step; −1 behind their end
        forced = [prefixes[row][time] if time < len(prefixes[row]) else -1 for row in rows.tolist()]
        given = torch.tensor(forced, device=chosen.device)
        chosen = torch.where(given >= 0, given, chosen)
    return chosen, log_probabilities.gather(-1, chosen[:, None])[:, 0]
