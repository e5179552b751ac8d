"""The parts of a text that are translated one by one."""

from __future__ import annotations

import re

from regard.text.lengths import cut
from regard.text.respelling import respelled
from regard.text.sentences import sentences
from regard.text.vocabulary import Piece, Vocabulary

MIN_SEVERAL_SENTENCES = 0.02
"""the fraction of training sources with several sentences from which a model is trusted to translate several at once"""
STOP = re.compile(r"(?<=[.?!])\s+")  # in a text without capitals, any such mark may end a sentence


def source_parts(source: str, vocabulary: Vocabulary, longest: int, max_tokens: int) -> list[str]:
    """Return the sentences of a text. Those with more than `longest` tokens are split at every mark that may end a
    sentence, and what still has more than `max_tokens` is cut at spaces, into parts of at most `longest`."""
    parts: list[str] = []
    for sentence in sentences(source):
        is_long = len(_pieces(sentence, vocabulary)) >= longest  # with the end token, it has one more
        for part in STOP.split(sentence) if is_long else [sentence]:
            pieces = _pieces(part, vocabulary)
            parts += [part] if len(pieces) <= max_tokens else cut(part, pieces, longest)
    return [part for part in parts if part]


def _pieces(text: str, vocabulary: Vocabulary) -> list[Piece]:
    return vocabulary.pieces(respelled(vocabulary, text))
