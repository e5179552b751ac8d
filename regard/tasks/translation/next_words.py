"""The words with which a translation can go on after a prefix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from regard.look.trace import Side
from regard.search.force_decode import force_decode
from regard.search.stepwise import greedy
from regard.tasks.translation.predictor import Translator
from regard.text.normal import tidy
from regard.text.vocabulary import END

MIN_PROBABILITY = 1e-4  # of a word that is listed


@dataclass(frozen=True)
class NextWord:
    """A word after a prefix, and the translation that goes on with it."""

    word: str  # empty: the translation ends after the prefix
    probability: float  # of all pieces of the word after the prefix
    text: str  # the translation: prefix, word, and what greedy search appends


def next_words(
    translator: Translator, source: str, prefix: str = "", count: int = 8, known: str = ""
) -> list[NextWord]:
    """Return the words that begin with one of the `count` most probable tokens after a prefix, most probable first.

    Tokens that lead to the same word are one entry. Words less probable than `MIN_PROBABILITY` are left out, except the
    next one of `known`, a translation that begins with the prefix.
    """
    start = translator.vocabularies.target.encode(tidy(prefix))
    tokens = translator.source_tokens(source)
    batch, lengths = translator.batch([tokens])
    with translator.autocast():
        (decoding,) = force_decode(translator.model, batch, lengths, [[*start, END]], count, self_attention=False)
    step = decoding.top_tokens[len(start)].tolist(), decoding.top_probabilities[len(start)].tolist()
    by_word: dict[str, NextWord] = {}
    for token, probability in zip(*step, strict=True):
        if token == END:
            by_word[""] = NextWord("", probability, translator.vocabularies.target.decode(start))
    starts = [[*start, token] for token in step[0] if token != END]
    known_tokens = translator.vocabularies.target.encode(tidy(known))
    if known_tokens[: len(start)] == start and len(known_tokens) > len(start):
        starts.append(known_tokens)
    words = _continued(translator, source, tokens, starts, len(start))
    for place, each in enumerate(words):
        other = by_word.get(each.word)
        if other is None and (each.probability >= MIN_PROBABILITY or starts[place] is known_tokens):
            by_word[each.word] = each
        elif other is not None and starts[place] is not known_tokens:
            by_word[each.word] = replace(other, probability=other.probability + each.probability)
    return sorted(by_word.values(), key=lambda each: -each.probability)


def _continued(
    translator: Translator, source: str, tokens: Sequence[int], prefixes: Sequence[Sequence[int]], place: int
) -> list[NextWord]:
    """Return the words to which the token at `place` of each prefix belongs, with the translations that begin so."""
    if not prefixes:
        return []
    batch, lengths = translator.batch([tokens] * len(prefixes))
    with translator.autocast():
        hypotheses = greedy(translator.model, batch, lengths, translator.limit, prefixes)
        outputs = [each.output_tokens for each in hypotheses]
        decoded = force_decode(translator.model, batch, lengths, outputs, 1, self_attention=False)
    words = []
    for output, decoding in zip(outputs, decoded, strict=True):
        target = translator.translated_part(source, output).target
        own = _pieces_of_word(target, place)
        log_probability = float(decoding.log_probabilities[own.start : own.stop].sum())
        words.append(NextWord(target.words[target.groups[own.start]].text, math.exp(log_probability), target.text))
    return words


def _pieces_of_word(side: Side, piece: int) -> range:
    """Return the pieces from one on that belong to the same word."""
    groups = side.groups
    end = next((place for place in range(piece, len(groups)) if groups[place] != groups[piece]), len(groups))
    return range(piece, end)
