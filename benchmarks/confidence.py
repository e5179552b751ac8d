"""The confidence of a translator, calibrated on one half of a dev set and judged on the other half, and the reverse.

    python benchmarks/confidence.py MODEL dev.tsv [--threads 1]
    python benchmarks/confidence.py MODEL val.en.gz val.de.gz

Prints the rank correlation with sentence chrF++ beside that of the mean log-probability, the calibration errors, and
the scores of the most confident 100 to 50 percent of the sources, of each half and of both together.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from regard.metrics.confidence import ConfidenceReport, RatedSentence, confidence_report
from regard.metrics.translation import group
from regard.tasks.registry import TRANSLATION, load_for
from regard.tasks.translation.calibration import RatedWords, fitted_confidence, rated_sentences, rated_words
from regard.text.pairs import read_references


def held_out(
    sentences: list[RatedSentence], words: list[RatedWords], part: np.ndarray, half: int
) -> list[RatedSentence]:
    """Return the sentences of one half, rated by regressions that were fitted on the other half."""
    model = fitted_confidence([words[row] for row in np.flatnonzero(part != half)]).model
    rated = []
    for row in np.flatnonzero(part == half).tolist():
        confidence = model.rate(words[row].features)
        rated.append(replace(sentences[row], words=confidence.words, confidence=confidence.fraction))
    return rated


def print_report(name: str, report: ConfidenceReport) -> None:
    """Print what the report says, and the gains beside what is wanted of them."""
    print(f"\n{name}: {report.sources:,} sources, {report.words:,} words")
    print("\n".join(report.lines()))
    gain = (report.correlation or 0.0) - (report.baseline_correlation or 0.0)
    whole, most = report.curve[0], next(point for point in report.curve if point.answered == 0.8)
    print(f"rank correlation above the mean log-probability's {gain:+.3f} (wanted: 0.05)")
    print(f"without the worst 20 %: exact {most.exact - whole.exact:+.2f}, chrF++ {most.chrf - whole.chrf:+.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    sources, references = group(read_references(given.pairs, False, None))
    translator = load_for(TRANSLATION, given.model, "cpu", "fp32")
    answers = translator.answers(sources)
    rows = [row for row, answer in enumerate(answers) if len(answer.translations[0].traces) == 1 and answer.text]
    answers, references = [answers[row] for row in rows], [references[row] for row in rows]
    sentences = rated_sentences(translator, answers, references)
    rated = rated_words(translator, [answer.translations[0].parts for answer in answers], references)
    words = [each for each in rated if each is not None]
    part = np.random.default_rng(1).permutation(len(rows)) % 2
    halves = [held_out(sentences, words, part, half) for half in (0, 1)]
    for name, part_of in zip(
        ("first half", "second half", "both halves"), [*halves, halves[0] + halves[1]], strict=True
    ):
        print_report(name, confidence_report(part_of))


if __name__ == "__main__":
    main()
