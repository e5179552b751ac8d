"""Guided attention: a word alignment of the training pairs tells attention where to look (Chen et al. 2016).

    loss = CE − g · mean over linked target pieces t of log Σ_{s linked with t} w_ts

Only the total weight on linked pieces counts, not its distribution among them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.alignment.links import Links
from regard.alignment.statistical import statistical_links
from regard.config.folder import Vocabularies
from regard.text.batches import Batch
from regard.text.normal import match_key, tidy
from regard.text.pairs import Pair
from regard.text.vocabulary import BYTES, END, PLACEHOLDERS, TERM_MARKS, WORD_BEGINS, Vocabulary

MIN_WEIGHT = 1e-6  # weights are clamped to this minimum before their logarithm


class Guide:
    """The alignment links of all training pairs, between chunks: words and punctuation, as vocabularies split text."""

    def __init__(
        self,
        links: Sequence[Links],
        sizes: Sequence[tuple[int, int]],
        vocabularies: Vocabularies,
        stops: Sequence[tuple[bool, bool]] | None = None,
    ) -> None:
        """`sizes`: the number of chunks of each pair's (source, target); `stops`: whether they end with punctuation."""
        self._links = [torch.tensor(sorted(pair_links), dtype=torch.int64).reshape(-1, 2) for pair_links in links]
        self._sizes = sizes
        self._stops = stops or [(True, True)] * len(sizes)
        self._kinds = _token_kinds(vocabularies.source), _token_kinds(vocabularies.target)
        self._placeholders = _placeholder_numbers(vocabularies.source), _placeholder_numbers(vocabularies.target)
        self._marks = _term_marks(vocabularies.source), _term_marks(vocabularies.target)

    @classmethod
    def of(cls, pairs: Sequence[Pair], vocabularies: Vocabularies) -> Guide:
        """Return the guide of the training pairs, which are aligned statistically."""
        if vocabularies.source.words or vocabularies.target.words:
            raise ValueError("training.guided_attention: expected a vocabulary of subwords, got one of words")
        sides = [
            (_chunks(vocabularies.source, pair.source), _chunks(vocabularies.target, pair.target)) for pair in pairs
        ]
        sizes = [(len(source), len(target)) for source, target in sides]
        stops = [(_ends_with_punctuation(source), _ends_with_punctuation(target)) for source, target in sides]
        return cls(statistical_links(sides), sizes, vocabularies, stops)

    def alignment(self, rows: Sequence[int], batch: Batch, next_step: bool = False) -> Tensor:
        """Return bool [B, T, S]: for a batch of the pairs `rows`, which source pieces each target piece is linked with.

        A placeholder is linked with its equal; other pieces of a pair that has placeholders are linked with nothing.
        The pieces of a term that is shown are linked as the word before it.
        `next_step`: link each step's input piece instead of its expected piece.
        """
        tokens = batch.source.cpu(), (batch.target if next_step else batch.expected).cpu()
        source, target = map(_chunk_numbers, tokens, self._kinds, self._marks)  # [B, S], [B, T]
        placeholders, copies = (numbers[side] for numbers, side in zip(self._placeholders, tokens, strict=True))
        table = torch.zeros(len(rows), int(target.max()) + 2, int(source.max()) + 2, dtype=torch.bool)
        chunk_counts = zip((source.amax(1) + 1).tolist(), (target.amax(1) + 1).tolist(), strict=True)
        for number, (row, counts) in enumerate(zip(rows, chunk_counts, strict=True)):
            # One chunk fewer: the punctuation at the end was removed. Otherwise punctuation inside was removed, or a
            # rare character was encoded as bytes, which hides where chunks begin.
            sides = zip(counts, self._sizes[row], self._stops[row], strict=True)
            if not placeholders[number].any() and all(size - stop <= count <= size for count, size, stop in sides):
                links = self._links[row]
                within = (links[:, 0] < counts[0]) & (links[:, 1] < counts[1])
                table[number, links[within, 1], links[within, 0]] = True
        first = torch.arange(len(rows))[:, None, None]
        linked = table[first, target[:, :, None], source[:, None, :]]
        linked |= (copies[:, :, None] == placeholders[:, None, :]) & (copies > 0)[:, :, None]
        return linked.to(batch.source.device)


def guided_loss(weights: Tensor, linked: Tensor) -> Tensor:
    """Return the loss of guided attention, for weights and linked [B, T, S]."""
    has_links = linked.any(-1)
    linked_weight = (weights * linked).sum(-1)[has_links]
    return -linked_weight.clamp(min=MIN_WEIGHT).log().mean() if linked_weight.numel() else weights.new_zeros(())


def _chunks(vocabulary: Vocabulary, text: str) -> list[str]:
    """Return the chunks of a text, without case and word-boundary marks."""
    return [match_key(chunk.replace(WORD_BEGINS, "")) for chunk in vocabulary.chunks(tidy(text))]


def _ends_with_punctuation(chunks: Sequence[str]) -> bool:
    return not any(map(str.isalnum, chunks[-1])) if chunks else False


def _token_kinds(vocabulary: Vocabulary) -> Tensor:
    """Return int [V]: 1 for pieces with a word-boundary mark, 2 for punctuation, 0 for those that continue a chunk."""
    signs = {name: chr(number) for number, name in enumerate(BYTES[:128])}
    names = [vocabulary.name(token) for token in range(len(vocabulary))]
    names = [signs.get(name, name) for name in names]
    return torch.tensor(
        [1 if name.startswith(WORD_BEGINS) else 2 if vocabulary.chunks(name)[-1:] == [name] else 0 for name in names]
    )


def _placeholder_numbers(vocabulary: Vocabulary) -> Tensor:
    """Return int [V]: the number of each placeholder, from 1 on; 0 for all other tokens."""
    numbers = torch.zeros(len(vocabulary), dtype=torch.int64)
    if vocabulary.has_placeholders:
        tokens = vocabulary.tokens
        numbers[[tokens[name] for name in PLACEHOLDERS]] = torch.arange(1, len(PLACEHOLDERS) + 1)
    return numbers


def _term_marks(vocabulary: Vocabulary) -> tuple[int, int]:
    """Return the tokens around a term that is shown; −1, which no token is, for a vocabulary without them."""
    if not vocabulary.has_term_marks:
        return -1, -1
    opening, closing = (vocabulary.tokens[name] for name in TERM_MARKS)
    return opening, closing


def _chunk_numbers(tokens: Tensor, kinds: Tensor, marks: tuple[int, int]) -> Tensor:
    """Return [B, N]: the number of the chunk of each piece; −1 for start token, end token and padding.

    A chunk begins with the word-boundary mark, is punctuation, or follows punctuation. What is between the `marks`
    belongs to the chunk before it.
    """
    real = tokens > END
    places = torch.arange(1, tokens.shape[1] + 1)
    opened, closed = (((tokens == mark) * places).cummax(1).values for mark in marks)  # the last of each mark so far
    shown = (opened > closed) | (tokens == marks[1])
    kind = kinds[tokens].masked_fill(~real | shown, 0)
    after_punctuation = torch.nn.functional.pad(kind[:, :-1], (1, 0)) == 2
    begins = real & ~shown & ((kind > 0) | after_punctuation)
    return (begins.long().cumsum(1) - 1).masked_fill(~real, -1)
