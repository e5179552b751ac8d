"""Does a translator use the terms of a glossary, and does the rest of its translations stay as good?

    python benchmarks/glossary.py MODEL --pairs PAIRS [PAIRS] [--sentences 500] [--rounds 3] [--threads N] [--seed 1]

Terms are drawn from the references: words that the model's own translation lacks, one to three per sentence, each with
the source word that the model attends to when it decodes the reference. Every sentence has a glossary of its own.
Prints how many terms stand in the translations, chrF++ with the terms removed from hypotheses and references, with and
without the glossary, and the speed of both searches, alternating.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

import regard
from regard.metrics.translation import group, score
from regard.tasks.translation.predictor import Translator
from regard.text.glossary import Glossary
from regard.text.normal import tidy
from regard.text.pairs import read_references

MIN_WORD = 3  # letters of a term


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
    return result[:count]


def is_term(word: str) -> bool:
    return len(word) >= MIN_WORD and not any(letter.isdigit() for letter in word) and any(map(str.isalpha, word))


def stands(term: str, text: str) -> bool:
    """Return whether a term stands in a text as a whole word."""
    return term in re.split(r"[\s.,;:!?\"'“”‘’()।…-]+", text)


def without(text: str, terms: Sequence[tuple[str, str]]) -> str:
    """Return a text without the target terms, each removed once."""
    for _, term in terms:
        text = re.sub(rf"(?<!\S){re.escape(term)}(?=\W|$)", "", text, count=1)
    return tidy(text)


def translated(translator: Translator, tests: Sequence[Case], with_terms: bool) -> tuple[list[str], float]:
    """Return the translations and the seconds that they took."""
    glossaries = [Glossary.of(case.terms) for case in tests] if with_terms else None
    began = time.perf_counter()
    outputs = translator.translate([case.source for case in tests], glossary=glossaries)
    return outputs, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--pairs", nargs="+", required=True)
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="print so many sentences")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    translator = regard.load(given.model)
    assert isinstance(translator, Translator)
    sources, references = group(read_references(given.pairs))
    pairs = [(source, options[0]) for source, options in zip(sources, references, strict=True)]
    tests = cases(translator, pairs, given.sentences, given.seed)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    outputs: dict[bool, list[str]] = {}
    for _ in range(given.rounds):
        for with_terms in (False, True):
            outputs[with_terms], took = translated(translator, tests, with_terms)
            seconds[with_terms].append(took)
    terms = [(term, output) for case, output in zip(tests, outputs[True], strict=True) for _, term in case.terms]
    standing = sum(stands(term, output) for term, output in terms)
    print(f"{len(tests)} sentences, {len(terms)} terms: {100 * standing / len(terms):.1f} % stand in the translations")
    kept = [[without(case.reference, case.terms)] for case in tests]
    for with_terms, name in ((False, "without"), (True, "with")):
        bare = [without(output, case.terms) for output, case in zip(outputs[with_terms], tests, strict=True)]
        whole = score(outputs[with_terms], [[case.reference] for case in tests])
        print(f"{name} glossary: chrF++ {whole.chrf:.2f}, with the terms removed {score(bare, kept).chrf:.2f}")
    ratios = [plain / other for plain, other in zip(seconds[False], seconds[True], strict=True)]
    print(f"speed with the glossary: {statistics.median(ratios):.2f} × that without")
    for case, plain, output in list(zip(tests, outputs[False], outputs[True], strict=True))[: given.show]:
        print(f"{case.source}\n  {case.terms}\n  without  {plain}\n  with     {output}\n  expected {case.reference}")


if __name__ == "__main__":
    main()
