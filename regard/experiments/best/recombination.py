"""New source sentences by crossover of training sentences, as text for an ensemble to translate (see `synthetic`).

    x p r,  y p s  →  x p s        p: a pivot of two words; r and s: the rests, with the same punctuation

"She had to wait an hour." and "I want to wait here." make "She had to wait here." Every three consecutive words of the
result occur in training. Almost all pairs of a word of x and a word of s must, too, in this order in some sentence:
otherwise half of the results are like "Mix three eggs and a daughter."
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import regex

from regard.text.boundaries import WITHOUT_SPACES
from regard.text.normal import match_key

PIVOT = 2  # words
PIVOT_WITHOUT_SPACES = 3  # characters, in scripts without spaces between words
MAX_UNATTESTED = 3  # pairs of a word before the pivot and a word after it
MAX_UNATTESTED_FRACTION = 1 / 3  # of these pairs
MAX_ATTEMPTS = 100  # per sentence asked for

_UNSPACED = WITHOUT_SPACES.pattern
_WORD = regex.compile(rf"(?={_UNSPACED})\X[\p{{P}}\p{{S}}]*|(?:(?!{_UNSPACED})\S)+")
_MARKS = regex.compile(r"^[\p{P}\p{S}]+|[\p{P}\p{S}]+$")  # at the ends of a word


@dataclass(frozen=True)
class Sentence:
    """A text and its words; in scripts without spaces between words, each character, with the punctuation after it."""

    text: str
    words: list[str]
    ends: list[int]  # offset in the text of the end of each word
    marks: list[str]  # the punctuation of the words from each one on, and "" for the end

    @classmethod
    def of(cls, text: str) -> Sentence:
        matches = list(_WORD.finditer(text))
        marks = [""]
        for match in reversed(matches):
            marks.append(" ".join([*_MARKS.findall(match[0]), marks[-1]]))
        return cls(text, [match[0] for match in matches], [match.end() for match in matches], marks[::-1])


@dataclass(frozen=True)
class Site:
    """A pivot in a sentence: the words from `begin` to `end`."""

    sentence: Sentence
    begin: int
    end: int


@dataclass
class Partners:
    """The other sites of the same pivot, each of which `next` returns once."""

    site: Site
    sites: list[Site]  # all sites of the pivot
    position: int  # of `site` among them
    drawn: int = 0

    def next(self) -> Site:
        self.drawn += 1
        return self.sites[(self.position + self.drawn) % len(self.sites)]

    def is_exhausted(self) -> bool:
        return self.drawn >= len(self.sites) - 1


def recombined(sentences: Sequence[str], count: int, seed: int, exclude: Iterable[str] = ()) -> list[str]:
    """Return up to `count` new sentences; fewer if all crossovers, or `MAX_ATTEMPTS` per sentence, have been tried.

    None of them has the `match_key` of one of `sentences`, of `exclude`, or of another one returned. None has more
    words than the longest of `sentences`.
    """
    rng = np.random.default_rng(seed)
    distinct = list(dict.fromkeys(sentences))
    corpus = [Sentence.of(distinct[index]) for index in rng.permutation(len(distinct))]
    max_words = max((len(sentence.words) for sentence in corpus), default=0)
    followers = _followers(corpus)
    keys = {match_key(text) for text in (*distinct, *exclude)}
    results: list[str] = []
    for left, right in islice(_crossovers(corpus, rng), MAX_ATTEMPTS * count):
        if left.end + len(right.sentence.words) - right.end > max_words or not _is_plausible(left, right, followers):
            continue
        text = _joined(left, right)
        key = match_key(text)
        if key not in keys:
            keys.add(key)
            results.append(text)
            if len(results) == count:
                break
    return results


def _followers(corpus: Iterable[Sentence]) -> dict[str, set[str]]:
    """Return for each word the words that occur later in the same sentence."""
    followers: dict[str, set[str]] = defaultdict(set)
    for sentence in corpus:
        for index, word in enumerate(sentence.words):
            followers[word].update(sentence.words[index + 1 :])
    return followers


def _crossovers(corpus: Sequence[Sentence], rng: np.random.Generator) -> Iterator[tuple[Site, Site]]:
    """Yield pairs of sites of the same pivot, each once: per round, one for each sentence, at one of its pivots.

    The sentences, and thereby the sites of a pivot, are in random order: the next site is a random one.
    """
    active = _partners(corpus)
    while active:
        for pivots, number in zip(active, rng.random(len(active)).tolist(), strict=True):
            index = int(number * len(pivots))
            partners = pivots[index]
            other = partners.next()
            if partners.is_exhausted():
                del pivots[index]
            if other.sentence is not partners.site.sentence:
                yield partners.site, other
        active = [pivots for pivots in active if pivots]


def _partners(corpus: Sequence[Sentence]) -> list[list[Partners]]:
    """Return the pivots of each sentence that other sites share; sentences without any are left out."""
    size = _pivot_size(corpus)
    sites_of: dict[tuple[str, ...], list[Site]] = defaultdict(list)
    partners: list[list[Partners]] = []
    for sentence in corpus:
        partners.append([])
        for end in range(size, len(sentence.words)):
            sites = sites_of[*sentence.words[end - size : end], sentence.marks[end]]
            sites.append(Site(sentence, end - size, end))
            if end > size:
                partners[-1].append(Partners(sites[-1], sites, len(sites) - 1))
    shared = ([pivot for pivot in pivots if len(pivot.sites) > 1] for pivots in partners)
    return [pivots for pivots in shared if pivots]


def _pivot_size(corpus: Sequence[Sentence]) -> int:
    without_spaces = sum(WITHOUT_SPACES.search(sentence.text) is not None for sentence in corpus)
    return PIVOT_WITHOUT_SPACES if 2 * without_spaces > len(corpus) else PIVOT


def _is_plausible(left: Site, right: Site, followers: dict[str, set[str]]) -> bool:
    """Return whether almost all pairs of a word before the pivot and a word after it occur in training.

    Sites that continue with the same word are left to the pivot that ends with it.
    """
    before, after = left.sentence.words[: left.begin], right.sentence.words[right.end :]
    if left.sentence.words[left.end] == after[0]:
        return False
    distinct = set(after)
    pairs = len(before) * len(distinct)
    unattested = pairs - sum(len(distinct & followers[word]) for word in before)
    return unattested <= min(MAX_UNATTESTED, MAX_UNATTESTED_FRACTION * pairs)


def _joined(left: Site, right: Site) -> str:
    """Return the left text up to the end of the pivot, and the right text from there on."""
    beginning = left.sentence.text[: left.sentence.ends[left.end - 1]]
    return beginning + right.sentence.text[right.sentence.ends[right.end - 1] :]
