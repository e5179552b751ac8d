"""Kinds of search, scored on the same sentences: greedy, beam search with each length penalty, ensembles, minimum Bayes
risk.

    python benchmarks/search.py dev.tsv model1 model2 model3 [--samples 8 32] [--temperatures 0.5] [--threads 1]

The first model is scored alone, then the ensemble of the first two, of the first three, and so on. Prints a Markdown
table.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import torch

from regard.metrics.translation import group, score
from regard.search.minimum_risk import MBR_TEMPERATURE
from regard.tasks.registry import TRANSLATION, load_for
from regard.tasks.translation.chosen_search import PENALTIES, translations_by_penalty
from regard.tasks.translation.predictor import Translator
from regard.tasks.translation.search_options import Search
from regard.text.pairs import read_references


def systems(folders: Sequence[str]) -> Iterator[tuple[str, Translator]]:
    """Yield the first model, and the ensembles of the first two, three, …, with their names."""
    models = [load_for(TRANSLATION, folder, "cpu", "fp32") for folder in folders]
    for count in range(1, len(models) + 1):
        first, *others = models[:count]
        yield (f"ensemble of {count}", first.ensemble(*others)) if others else ("one model", first)


def searches(
    translator: Translator, sources: list[str], samples: Sequence[int], temperatures: Sequence[float]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the translations by each kind of search, with its name."""
    yield "greedy", translator.translate(sources, Search(beam=1))
    for penalty, translations in translations_by_penalty(translator, sources, 5, PENALTIES).items():
        yield f"beam 5, penalty {penalty}", translations
    for count, temperature in product(samples, temperatures):
        search = Search(mbr=count, temperature=temperature)
        yield f"MBR, {count} samples, temperature {temperature}", translator.translate(sources, search)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dev", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--samples", type=int, nargs="*", default=[8, 32])
    parser.add_argument("--temperatures", type=float, nargs="*", default=[MBR_TEMPERATURE])
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    sources, references = group(read_references([given.dev], False, None))
    length = sum(len(options[0]) for options in references)
    print(
        f"{len(sources)} sources\n\n| model | search | chrF++ | BLEU | TER | length |\n|---|---|---|---|---|---|",
        flush=True,
    )
    for name, translator in systems(given.models):
        for search, texts in searches(translator, sources, given.samples, given.temperatures):
            scores = score(texts, references)
            numbers = f"{scores.chrf:.2f} | {scores.bleu:.2f} | {scores.ter:.2f}"
            print(f"| {name} | {search} | {numbers} | {sum(map(len, texts)) / length:.2f} |", flush=True)


if __name__ == "__main__":
    main()
