"""`regard.align`: word alignment by statistics of the sentence pairs alone, without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from regard.alignment.corpus import TokenPair, corpus_of
from regard.alignment.error_rate import ErrorRate, error_rate
from regard.alignment.learning import ITERATIONS, train
from regard.alignment.links import Gold, Links, read_gold
from regard.alignment.posteriors import LinkProbabilities, link_probabilities
from regard.alignment.priors import Priors, learned_priors
from regard.alignment.priors_file import load_priors, save_priors
from regard.alignment.rows import Notify, Sides, read_rows, without_long
from regard.alignment.tokens import counted_form, has_long_words, split_words, tokens
from regard.look.trace import AttentionWeights, Side, Trace
from regard.look.words import Span

DEFAULT_THRESHOLD = 0.5
"""the mean of both directions' posteriors that makes a link: both find it likely, or one is certain"""
Progress = Callable[[int, int], None]  # (iterations done, all iterations)


@dataclass(frozen=True, repr=False)
class AlignmentResult:
    """The links of sentence pairs, their probabilities, and what was learned from the pairs."""

    pairs: Sequence[Sides]
    """the texts whose tokens, separated by blanks, the links count"""
    probabilities: LinkProbabilities
    """of each pair, the probability of every likely link (0.01 and more) by (source token, target token)"""
    min_probability: float
    """the smallest probability of a link"""
    priors: Priors | None
    """what was learned, from these pairs and before; None: nothing, as no pair has words on both sides"""

    def __repr__(self) -> str:
        return f"<AlignmentResult of {len(self.pairs):,} pairs>"

    @cached_property
    def links(self) -> list[Links]:
        """The links of each pair, as sets of (source token, target token)."""
        return self.probabilities.at_least(self.min_probability).links()

    def save(self, path: str | Path) -> None:
        """Write what was learned to a file, which `regard.align(…, priors=path)` reads."""
        if self.priors is None:
            raise ValueError("nothing was learned: no pair has words on both sides")
        save_priors(self.priors, path)

    def error_rate(self, gold: str | Path | Sequence[Gold]) -> ErrorRate:
        """Return AER, precision and recall against gold links, given or in a file."""
        if isinstance(gold, str | Path):
            gold = read_gold(gold, [(len(tokens(source)), len(tokens(target))) for source, target in self.pairs])
        return error_rate(self.links, gold)

    def aer(self, gold: str | Path | Sequence[Gold]) -> float:
        """Return the alignment error rate against gold links, given or in a file."""
        return self.error_rate(gold).aer

    def trace(self, number: int) -> Trace:
        """Return the probabilities of a pair as a trace, for `regard.look`."""
        source, target = (_side(text) for text in self.pairs[number])
        matrix = self.probabilities.matrix(number, (len(target.pieces), len(source.pieces)))
        return Trace(source, target, [AttentionWeights("cross", matrix[None, None])])


def _side(text: str) -> Side:
    """Return a side of a trace whose pieces are the tokens."""
    pieces, begin = [], 0
    for token in tokens(text):
        pieces.append(Span(token, begin, begin + len(token)))
        begin += len(token) + 1
    return Side(" ".join(piece.text for piece in pieces), pieces)


def align(
    pairs: Sequence[Sides] | Sequence[str | Path] | str | Path,
    *,
    priors: Priors | str | Path | None = None,
    min_probability: float = DEFAULT_THRESHOLD,
    tokenize: bool = False,
    threads: int | None = None,
    notify: Notify | None = None,
    progress: Progress | None = None,
) -> AlignmentResult:
    """Align the words of sentence pairs by a statistical model that is learned from these pairs.

    pairs            (source, target) texts, a .tsv or .jsonl file, or two parallel text files
    priors           what was learned before from other pairs: a file that `AlignmentResult.save` wrote
    min_probability  the smallest probability of a link, the mean of the posteriors of both directions
    tokenize         split off punctuation, and split text of scripts without spaces into characters; without it, tokens
                     are what blanks separate
    threads          CPU threads; None: as many as torch uses. The result does not depend on it
    notify           called with notices, such as those about pairs that get no links because they are too long
    progress         called with the number of iterations done and of all iterations
    """
    if not 0 < min_probability <= 1:
        raise ValueError(f"min_probability: expected more than 0 and at most 1, got {min_probability}")
    rows = _rows(pairs, notify)
    if tokenize:
        rows = [(split_words(source), split_words(target)) for source, target in rows]
    elif notify is not None:
        _report_unsplit(rows, notify)
    known = load_priors(priors) if isinstance(priors, str | Path) else priors
    probabilities, learned = _align(_counted(without_long(rows, notify)), known, threads, progress)
    result = AlignmentResult(rows, probabilities, min_probability, learned)
    if notify is not None:
        _report_unlinked(result, notify)
    return result


def _rows(pairs: Sequence[Sides] | Sequence[str | Path] | str | Path, notify: Notify | None) -> Sequence[Sides]:
    """Return the texts of each pair, read if files are given."""
    if isinstance(pairs, str | Path):
        return read_rows([pairs], notify=notify)
    files = [each for each in pairs if isinstance(each, str | Path)]
    if files:
        return read_rows(files, notify=notify)
    return [(sides[0], sides[1]) for sides in pairs if not isinstance(sides, str | Path)]


def _report_unsplit(rows: Sequence[Sides], notify: Notify) -> None:
    """Give a notice if many lines are in a script without spaces and their words were not split."""
    unsplit = sum(any(map(has_long_words, sides)) for sides in rows)
    if unsplit > len(rows) / 10:
        notify(f"{unsplit:,} lines have long tokens of a script without spaces; expected spaces, or --tokenize")


def _report_unlinked(result: AlignmentResult, notify: Notify) -> None:
    """Give a notice if most pairs got no link."""
    chosen = result.probabilities.at_least(result.min_probability)
    linked, complete = int((chosen.ends > chosen.begins).sum()), sum(map(all, result.pairs))
    if linked < complete / 2:
        notify(
            f"{complete - linked:,} of {complete:,} pairs have no link; expected more pairs to learn from, or --priors"
        )


class _CountedForms(dict[str, str]):
    """The forms of tokens that are counted."""

    def __missing__(self, token: str) -> str:
        form = self[token] = counted_form(token)
        return form


def _counted(rows: Sequence[Sides]) -> Iterator[TokenPair]:
    """Yield the tokens of each pair in the form in which they are counted."""
    forms = _CountedForms()
    for source, target in rows:
        yield [forms[token] for token in tokens(source)], [forms[token] for token in tokens(target)]


def statistical_links(pairs: Sequence[TokenPair], threshold: float = DEFAULT_THRESHOLD) -> list[Links]:
    """Return the links of each pair of token lists, learned from all of them. A pair with an empty side has none.

    `threshold` is the minimum of the mean of both directions' posteriors.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold: expected more than 0 and at most 1, got {threshold}")
    return _align(iter(pairs))[0].at_least(threshold).links()


def _align(
    pairs: Iterator[TokenPair],
    priors: Priors | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[LinkProbabilities, Priors | None]:
    """Return the link probabilities of pairs of token lists, and what was learned."""
    corpus = corpus_of(pairs)
    if not corpus.groups:
        nothing = np.zeros(len(corpus.first), np.int64)
        return LinkProbabilities(nothing, nothing, *(np.empty(0, np.int32),) * 2, np.empty(0, np.float32)), priors
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, sum(ITERATIONS) + 1)

    threads = threads or torch.get_num_threads()
    learned = train(corpus, priors, threads, advance)
    probabilities = link_probabilities(corpus, learned.model, threads, advance)
    return probabilities, learned_priors(corpus, learned.expected, priors)
