"""Which heads are read for links."""

import numpy as np
import pytest

from regard.alignment.aligner import best_selection
from regard.alignment.head_selection import HeadSelection, head_selections
from regard.look.trace import AttentionWeights, Side, Trace
from regard.look.words import Span

PAIRS = [
    ("the boy sees a cow", "boy cow sees"),
    ("the girl sees a dog", "girl dog sees"),
    ("a cow sees the girl", "cow girl sees"),
    ("the dog hears a boy", "dog boy hears"),
    ("a girl hears the cow", "girl cow hears"),
] * 4


def side(text: str) -> Side:
    places, start = [], 0
    for word in text.split(" "):
        places.append(Span(word, start, start + len(word)))
        start += len(word) + 1
    return Side(text, [*places, Span("", len(text), len(text))])


def trace(source: str, target: str) -> Trace:
    """Two layers of two heads: the others look at the first word; head 1 of layer 1 at the same one, one step late."""
    rows, columns = target.split(" "), source.split(" ")
    weights = np.full((2, 2, len(rows) + 1, len(columns) + 1), 0.01, np.float32)
    weights[..., 0] = 0.9
    weights[1, 1, :, 0] = 0.01
    for row, word in enumerate(rows):
        weights[1, 1, row + 1, columns.index(word)] = 0.9
    return Trace(side(source), side(target), [AttentionWeights("cross", weights)])


def test_the_head_that_aligns_is_found_without_gold() -> None:
    report: list[str] = []
    result = best_selection([trace(*pair) for pair in PAIRS[:5]], PAIRS[:5], PAIRS, report.append)
    assert result == HeadSelection(1, 1, next_step=True)
    assert report[0].startswith("read: layer 1, head 1, one step later, which agrees best")


def test_every_head_is_tried() -> None:
    tried = list(head_selections([trace(*PAIRS[0])]))
    assert len(tried) == len(set(tried)) == 2 * (1 + 2 + 4)


def test_one_attention_leaves_nothing_to_choose() -> None:
    one = trace(*PAIRS[0])
    alone = Trace(one.source, one.target, [AttentionWeights("cross", one.attentions[0].weights[:1, :1])])
    assert best_selection([alone], PAIRS[:1], PAIRS) == HeadSelection()


def test_means_and_single_heads() -> None:
    one = trace(*PAIRS[0])
    weights = one.attentions[0].weights
    np.testing.assert_allclose(HeadSelection().weights(one), weights.mean((0, 1)))
    np.testing.assert_allclose(HeadSelection(1).weights(one), weights[1].mean(0))
    np.testing.assert_allclose(HeadSelection(1, 0).weights(one), weights[1, 0])
    np.testing.assert_allclose(HeadSelection(head=1).weights(one), weights[:, 1].mean(0))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (HeadSelection(2), "layer: expected 0 to 1, got 2"),
        (HeadSelection(0, 4), "head: expected 0 to 1, got 4"),
    ],
)
def test_a_head_that_is_not_there(wrong: HeadSelection, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong.weights(trace(*PAIRS[0]))
