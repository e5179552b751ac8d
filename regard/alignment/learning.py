"""Training of the statistical aligner: on word prefixes, which are fewer and so seen more often each, then on words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt

from regard.alignment.corpus import Floats, TokenizedCorpus
from regard.alignment.hmm import Expectations, JumpSums, Model, e_step, initial_jumps, normalized_jumps
from regard.alignment.lexicon import UNSEEN_COUNT, m_step, model_one_counts, uniform_lexicon
from regard.alignment.priors import Priors, prior_counts, with_frequencies
from regard.alignment.word_prior import Prefixes, lexicon_from_prefixes, prefixes_of, spelling_similarity

SPELLING_COUNT = 0.3  # the prior's count for words that are spelt the same
PREFIX_COUNT = 3.0  # the prior's count for each word, distributed as its prefix is translated
ITERATIONS = 5, 3, 4  # the iterations of Model 1 and of the HMM on word prefixes, then of the HMM on whole words

SMALL_CORPUS = 7.0
"""smaller corpora than (7 · UNSEEN_COUNT)² words have √words / 7 as the count of unseen translations: with a count that
is larger than those of most words, null would generate nearly all of them"""

Advance = Callable[[], None]  # called after each iteration


@dataclass(frozen=True)
class Learned:
    """A trained model, and the expected counts of its last iteration."""

    model: Model
    expected: Expectations


def train(
    corpus: TokenizedCorpus, priors: Priors | None = None, threads: int = 1, advance: Advance = lambda: None
) -> Learned:
    """Train on a corpus with at least one pair, and with what was learned before from other text."""
    unseen = _unseen_count(corpus, priors)
    prefixes, model = _train_on_prefixes(corpus, priors, unseen, threads, advance)
    lexicon = lexicon_from_prefixes(with_frequencies(corpus, priors), prefixes, model.lexicon)
    model = replace(model, lexicon=lexicon)
    spelling = SPELLING_COUNT * spelling_similarity(corpus)
    prior = prior_counts(
        corpus, PREFIX_COUNT * lexicon.forward + spelling, PREFIX_COUNT * lexicon.backward + spelling, priors
    )
    for _ in range(ITERATIONS[2]):
        expected = e_step(corpus, model, threads, _known_jumps(priors))
        lexicon = m_step(corpus, expected.counts, prior, unseen)
        model = Model(lexicon, expected.forward.scores(), expected.backward.scores())
        advance()
    return Learned(model, expected)


def _unseen_count(corpus: TokenizedCorpus, priors: Priors | None) -> float:
    """Return the count that each word reserves for unseen translations."""
    before = 0.0 if priors is None else float(priors.words.source_counts.sum())
    return min(UNSEEN_COUNT, sqrt(float(corpus.source_counts.sum()) + before) / SMALL_CORPUS)


def _train_on_prefixes(
    corpus: TokenizedCorpus, priors: Priors | None, unseen: float, threads: int, advance: Advance
) -> tuple[Prefixes, Model]:
    """Return the prefixes of the words, and a model of them."""
    prefixes, known = prefixes_of(corpus), None if priors is None else priors.by_prefix()
    words = prefixes.words
    spelling = SPELLING_COUNT * spelling_similarity(words)
    prior = prior_counts(words, spelling, spelling, known)
    lexicon = uniform_lexicon(words)
    for _ in range(ITERATIONS[0]):
        counts = prefixes.tied(model_one_counts(corpus, prefixes.expanded(lexicon)))
        lexicon = m_step(words, counts, prior, unseen)
        advance()
    model = Model(lexicon, *_initial_jumps(priors))
    for _ in range(ITERATIONS[1]):
        expanded = replace(model, lexicon=prefixes.expanded(model.lexicon))
        expected = e_step(corpus, expanded, threads, _known_jumps(priors))
        lexicon = m_step(words, prefixes.tied(expected.counts), prior, unseen)
        model = Model(lexicon, expected.forward.scores(), expected.backward.scores())
        advance()
    return replace(prefixes, words=with_frequencies(words, known)), model


def _known_jumps(priors: Priors | None) -> JumpSums | None:
    """Return the sums of jumps that were learned before."""
    return None if priors is None else (priors.forward_jumps, priors.backward_jumps)


def _initial_jumps(priors: Priors | None) -> tuple[Floats, Floats]:
    """Return the scores of jumps of both directions with which training begins."""
    if priors is None:
        return initial_jumps(), initial_jumps()
    forward, backward = (normalized_jumps(*sums) for sums in (priors.forward_jumps, priors.backward_jumps))
    return forward, backward
