"""Paired bootstrap resampling, against sacrebleu's."""

from __future__ import annotations

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from regard.metrics.significance import BootstrapScores, p_value
from regard.metrics.translation import score

WORDS = ["the", "boy", "sees", "a", "mango", "and", "some", "water", "near", "that", "old", "house", "today"]


def corpus(sentences: int = 60) -> tuple[list[str], np.random.Generator]:
    draw = np.random.default_rng(3)
    return [" ".join(draw.choice(WORDS, 7)) for _ in range(sentences)], draw


def worsened(texts: list[str], fraction: float, draw: np.random.Generator) -> list[str]:
    """Replace a fraction of the words by other ones."""
    return [
        " ".join(str(draw.choice(WORDS)) if draw.random() < fraction else word for word in text.split())
        for text in texts
    ]


@pytest.mark.parametrize("fraction", [0.32, 0.36, 0.6])
def test_one_run_each_as_sacrebleu_does(fraction: float) -> None:
    references, draw = corpus()
    best, other = worsened(references, 0.3, draw), worsened(references, fraction, draw)
    systems = [("best", best), ("other", other)]
    _, expected = PairedTest(systems, {"chrF": CHRF(word_order=2)}, [references], "bs", 1000)()
    ours = BootstrapScores([[text] for text in references])
    one, two = ours.resampled(best), ours.resampled(other)
    assert p_value([two], [one]) == pytest.approx(expected["chrF2++"][1].p_value)
    assert two[0] == pytest.approx(expected["chrF2++"][1].score)
    assert two[1:].mean() == pytest.approx(expected["chrF2++"][1].mean, abs=1e-4)


def test_the_first_score_is_that_of_the_whole_corpus_with_several_references() -> None:
    texts, draw = corpus(20)
    references = [[text] if number % 3 else [text, text[::-1]] for number, text in enumerate(texts)]
    hypotheses = worsened(texts, 0.4, draw)
    ours = BootstrapScores(references, samples=3)
    assert ours.resampled(hypotheses)[0] == pytest.approx(score(hypotheses, references).chrf)
    alone = [score([text], [known]).chrf for text, known in zip(hypotheses, references, strict=True)]
    assert ours.by_sentence(hypotheses) == pytest.approx(alone)


def test_runs_are_averaged_and_resampled_together() -> None:
    """A kind with twice the same run is as significant as with one; the order of runs does not matter."""
    references, draw = corpus()
    ours = BootstrapScores([[text] for text in references])
    one, two, three = (ours.resampled(worsened(references, fraction, draw)) for fraction in (0.3, 0.35, 0.4))
    assert p_value([three, three], [one]) == p_value([three], [one])
    assert p_value([two, three], [one]) == p_value([three, two], [one])
    assert p_value([two, three], [one, one]) != p_value([three], [one])


def test_extremes() -> None:
    references, _ = corpus()
    ours = BootstrapScores([[text] for text in references])
    right, wrong = ours.resampled(references), ours.resampled(["xyz"] * len(references))
    assert p_value([wrong], [right]) == 1 / 1001
    assert p_value([right], [right]) == 1.0, "no difference is never significant"
