"""All pairs at once, against sacrebleu one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF

from regard.metrics.pairwise_chrf import pairwise_chrf

WORDS = ["a", "I", "the", "boy", "(sees)", "mango.", "मुलगा", "आंबा", "पाहतो।", "12,5", "aaaa", "!", "…", "é", "boy,boy"]


def drawn(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randrange(9))) for _ in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_the_same_as_sacrebleu(seed: int) -> None:
    texts = [*drawn(seed, 12), "", "x", "xy z", "boy boy boy boy"]
    metric = CHRF(word_order=2)
    expected = [[metric.sentence_score(one, [other]).score for other in texts] for one in texts]
    np.testing.assert_allclose(pairwise_chrf(texts), expected, atol=1e-9)


def test_no_text_and_one() -> None:
    assert pairwise_chrf([]).shape == (0, 0)
    np.testing.assert_allclose(pairwise_chrf(["a boy"]), [[100.0]])
