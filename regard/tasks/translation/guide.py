"""Guided attention: links computed from the pairs themselves tell attention where to look (Chen et al. 2016).

    loss = CE − g · mean over linked target pieces t of log Σ_{s linked with t} w_ts

Only how much weight falls on linked pieces counts, not how it is spread among them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.alignment.hmm import statistical_links
from regard.alignment.links import Links
from regard.config.folder import Vocabularies
from regard.text.batches import Batch
from regard.text.normal import match_key, tidy
from regard.text.pairs import Pair
from regard.text.vocabulary import BYTES, END, WORD_BEGINS, Vocabulary

LEAST = 1e-6
"""the weight below which it does not matter any more how little it is"""


class Guide:
    """The links of all training pairs, between chunks: words and punctuation, as vocabularies part them."""

    def __init__(self, links: Sequence[Links], sizes: Sequence[tuple[int, int]], vocabularies: Vocabularies) -> None:
        """`sizes`: how many chunks the sides of each pair have."""
        self._links = [torch.tensor(sorted(some), dtype=torch.int64).reshape(-1, 2) for some in links]
        self._sizes = sizes
        self._kinds = _kinds(vocabularies.source), _kinds(vocabularies.target)

    @classmethod
    def of(cls, pairs: Sequence[Pair], vocabularies: Vocabularies) -> Guide:
        if vocabularies.source.words or vocabularies.target.words:
            raise ValueError("training.guided_attention: expected a vocabulary of subwords, got one of words")
        sides = [
            (_chunks(vocabularies.source, pair.source), _chunks(vocabularies.target, pair.target)) for pair in pairs
        ]
        sizes = [(len(source), len(target)) for source, target in sides]
        return cls(statistical_links(sides), sizes, vocabularies)

    def linked(self, rows: Sequence[int], batch: Batch, later: bool = False) -> Tensor:
        """bool [B, T, S]: for a batch of the pairs `rows`, which source pieces each target piece is linked with.

        `later`: each step with the piece that was said last, which it is given, not with the one it must say.
        """
        source = _owners(batch.source.cpu(), self._kinds[0])  # [B, S]
        target = _owners((batch.target if later else batch.expected).cpu(), self._kinds[1])  # [B, T]
        table = torch.zeros(len(rows), int(target.max()) + 2, int(source.max()) + 2, dtype=torch.bool)
        counts = zip((source.amax(1) + 1).tolist(), (target.amax(1) + 1).tolist(), strict=True)
        for number, (row, found) in enumerate(zip(rows, counts, strict=True)):
            # One fewer: met without its full stop. Else a rare sign was spelled in bytes, and chunks are not known.
            if all(size - 1 <= count <= size for count, size in zip(found, self._sizes[row], strict=True)):
                links = self._links[row]
                within = (links[:, 0] < found[0]) & (links[:, 1] < found[1])
                table[number, links[within, 1], links[within, 0]] = True
        first = torch.arange(len(rows))[:, None, None]
        return table[first, target[:, :, None], source[:, None, :]].to(batch.source.device)


def guided_loss(weights: Tensor, linked: Tensor) -> Tensor:
    """weights and linked [B, T, S]"""
    known = linked.any(-1)
    mass = (weights * linked).sum(-1)[known]
    return -mass.clamp(min=LEAST).log().mean() if mass.numel() else weights.new_zeros(())


def _chunks(vocabulary: Vocabulary, text: str) -> list[str]:
    """Without case and marks of blanks."""
    return [match_key(chunk.replace(WORD_BEGINS, "")) for chunk in vocabulary.chunks(tidy(text))]


def _kinds(vocabulary: Vocabulary) -> Tensor:
    """int [V]: 1 for a piece that begins with the mark of a blank, 2 for punctuation, 0 for what goes on."""
    signs = {name: chr(number) for number, name in enumerate(BYTES[:128])}
    names = [vocabulary.name(token) for token in range(len(vocabulary))]
    names = [signs.get(name, name) for name in names]
    return torch.tensor(
        [1 if name.startswith(WORD_BEGINS) else 2 if vocabulary.chunks(name)[-1:] == [name] else 0 for name in names]
    )


def _owners(tokens: Tensor, kinds: Tensor) -> Tensor:
    """[B, N]: the number of the chunk that each piece belongs to; −1 at the end token, behind it and at the start.

    A chunk begins with the mark of a blank, is punctuation, or comes behind punctuation.
    """
    real = tokens > END
    kind = kinds[tokens].masked_fill(~real, 0)
    behind = torch.nn.functional.pad(kind[:, :-1], (1, 0)) == 2
    begins = real & ((kind > 0) | behind)
    return (begins.long().cumsum(1) - 1).masked_fill(~real, -1)
