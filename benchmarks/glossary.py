"""Does a translator use the terms of a glossary, and does the rest of its translations stay as good?

    python benchmarks/glossary.py MODEL [OTHER …] --pairs PAIRS [PAIRS] [--sentences 500] [--rounds 3] [--threads N]
        [--seed 1] [--train PAIRS [PAIRS]]

Terms are drawn from the references: words that the first model's own translation lacks, one to three per sentence, each
with the source word that it attends to when it decodes the reference. Every sentence has a glossary of its own.
Prints for each model how many terms stand in the translations, chrF++, chrF++ with the terms removed from hypotheses
and references, and the speed against beam search without the glossary, alternating:

    constrained          constrained search alone
    shown                terms are shown in the source (`training.glossary`), and beam search is free to leave them out
    shown, constrained   both: what `translate --glossary` does with a model that was trained so

and the scores of all pairs without a glossary. With --train, terms also have the other forms that are linked with their
source word in these pairs, the most frequent first: "right form" is how often that of the reference stands.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from unittest.mock import patch

import torch

from regard.look.trace import Side
from regard.metrics.translation import group, score
from regard.tasks.registry import TRANSLATION, load_for
from regard.tasks.translation import predictor
from regard.tasks.translation.linked_terms import find_terms, is_form
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.read_source import ReadSource
from regard.tasks.translation.terms import terms_of
from regard.text.glossary import Glossary
from regard.text.normal import tidy
from regard.text.pairs import read_pairs, read_references

MIN_WORD = 3  # letters of a term
MODES = {
    "without": (False, False),
    "constrained": (False, True),
    "shown": (True, False),
    "shown, constrained": (True, True),
}
"""the name of a search → (whether terms are shown, whether they are required)"""
FormCounts = dict[str, Counter[str]]


@dataclass(frozen=True)
class Case:
    """A sentence, one of its references, and (source, target) terms."""

    source: str
    reference: str
    terms: list[tuple[str, str]]


def cases(translator: Translator, pairs: Sequence[tuple[str, str]], count: int, seed: int) -> list[Case]:
    """Return sentences with terms that the model gets wrong without a glossary."""
    rng = random.Random(seed)
    drawn = list(pairs)
    rng.shuffle(drawn)
    result: list[Case] = []
    for first in range(0, len(drawn), 256):
        part = drawn[first : first + 256]
        outputs = translator.translate([source for source, _ in part])
        traces = translator.force_decode(*map(list, zip(*part, strict=True)))
        for (source, reference), output, trace in zip(part, outputs, traces, strict=True):
            targets, sources, weights = trace.by_words()
            linked: dict[str, str] = {}
            for row, word in enumerate(targets):
                origin = sources[int(weights[row].argmax())].text
                frequent = re.findall(rf"(?<!\w){re.escape(word.text)}(?!\w)", reference)
                alone = len(frequent) == 1 and not stands(word.text, output)
                if alone and is_term(origin) and is_term(word.text):
                    linked.setdefault(origin.casefold(), word.text)
            if linked:
                terms = rng.sample(sorted(linked.items()), min(len(linked), rng.randint(1, 3)))
                result.append(Case(source, reference, terms))
        if len(result) >= count:
            break
    return result[:count]


def is_term(word: str) -> bool:
    return len(word) >= MIN_WORD and not any(letter.isdigit() for letter in word) and any(map(str.isalpha, word))


def stands(term: str, text: str) -> bool:
    """Return whether a term stands in a text as a whole word."""
    marks = r"[\s.,;:!?\"'“”‘’()।…]+" if "-" in term else r"[\s.,;:!?\"'“”‘’()।…-]+"
    return term in re.split(marks, text)


def without(text: str, terms: Sequence[tuple[str, str]]) -> str:
    """Return a text without the target terms, each removed once."""
    for _, term in terms:
        text = re.sub(rf"(?<!\S){re.escape(term)}(?=\W|$)", "", text, count=1)
    return tidy(text)


def form_counts(files: Sequence[str]) -> FormCounts:
    """Return how often target words are linked with each source word in training pairs."""
    pairs = read_pairs(files).pairs
    counts: FormCounts = {}
    for pair, terms in zip(pairs, find_terms(pairs, 1), strict=True):
        for term in terms:
            counts.setdefault(pair.source[term.start : term.end].casefold(), Counter())[term.target] += 1
    return counts


def glossary_of(case: Case, counts: FormCounts) -> Glossary:
    """Return the glossary of a case: each term in its own form and in those that occur in training pairs."""
    entries = []
    for source, term in case.terms:
        known = [form for form, _ in counts.get(source, Counter[str]()).most_common() if is_form(form, term)]
        forms = known[:3] if term in known[:3] else [*known[:2], term]
        entries.append((source, forms))
    return Glossary.of(entries)


def translated(translator: Translator, tests: Sequence[Case], mode: str, counts: FormCounts) -> tuple[list[str], float]:
    """Return the translations by a mode of search and the seconds that they took."""
    shown, required = MODES[mode]
    glossaries = None if mode == "without" else [glossary_of(case, counts) for case in tests]
    with ExitStack() as changed:
        if not shown:
            changed.enter_context(patch.object(Translator, "_read", hidden))
        if not required:
            changed.enter_context(patch.object(predictor, "lacking", lambda *_: []))
        began = time.perf_counter()
        outputs = translator.translate([case.source for case in tests], glossary=glossaries)
        return outputs, time.perf_counter() - began


def hidden(_: Translator, side: Side, glossary: Glossary | None) -> ReadSource:
    """Return a source without its terms."""
    return ReadSource.of(side, terms_of(side, glossary))


def measure(translator: Translator, tests: Sequence[Case], rounds: int, counts: FormCounts, show: int) -> None:
    """Print a line for each mode of search that the model has."""
    modes = [mode for mode, (shown, _) in MODES.items() if not shown or translator.vocabularies.source.has_term_marks]
    seconds: dict[str, list[float]] = {mode: [] for mode in modes}
    outputs: dict[str, list[str]] = {}
    for _ in range(rounds):
        for mode in modes:
            outputs[mode], took = translated(translator, tests, mode, counts)
            seconds[mode].append(took)
    bare = [[without(case.reference, case.terms)] for case in tests]
    for mode in modes:
        terms = [(term, output) for case, output in zip(tests, outputs[mode], strict=True) for _, term in case.terms]
        standing = 100 * sum(stands(term, output) for term, output in terms) / len(terms)
        rest = score([without(output, case.terms) for output, case in zip(outputs[mode], tests, strict=True)], bare)
        whole = score(outputs[mode], [[case.reference] for case in tests])
        speed = statistics.median(one / two for one, two in zip(seconds["without"], seconds[mode], strict=True))
        stand = f"{'right form' if counts else 'stand'} {standing:.1f} %"
        print(f"  {mode}: {stand}, chrF++ {whole.chrf:.2f}, terms removed {rest.chrf:.2f}, speed {speed:.2f} ×")
    for number, case in enumerate(tests[:show]):
        print(f"{case.source}\n  {case.terms}\n  expected {case.reference}")
        print("\n".join(f"  {mode}: {outputs[mode][number]}" for mode in modes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--pairs", nargs="+", required=True)
    parser.add_argument("--train", nargs="+", help="training pairs, for several forms of a term")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="print so many sentences")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    translators = [load_for(TRANSLATION, model) for model in given.models]
    references = read_references(given.pairs)
    sources, options = group(references)
    pairs = [(source, known[0]) for source, known in zip(sources, options, strict=True)]
    tests = cases(translators[0], pairs, given.sentences, given.seed)
    counts = form_counts(given.train) if given.train else {}
    print(f"{len(tests)} sentences, {sum(len(case.terms) for case in tests)} terms")
    for name, translator in zip(given.models, translators, strict=True):
        plain = translator.evaluate(references)
        print(f"{name}: all pairs without a glossary: chrF++ {plain.chrf:.2f}, exact match {plain.exact:.2f} %")
        measure(translator, tests, given.rounds, counts, given.show)


if __name__ == "__main__":
    main()
