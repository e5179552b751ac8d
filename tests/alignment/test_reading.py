"""Which heads are read for links."""

import numpy as np
import pytest

from regard.alignment.aligner import best_reading
from regard.alignment.reading import Reading, readings
from regard.look.trace import Attended, Side, Span, Trace

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
    return Trace(side(source), side(target), [Attended("cross", weights)])


def test_the_head_that_aligns_is_found_without_gold() -> None:
    told: list[str] = []
    found = best_reading([trace(*pair) for pair in PAIRS[:5]], PAIRS[:5], PAIRS, told.append)
    assert found == Reading(1, 1, later=True)
    assert told[0].startswith("read: layer 1, head 1, one step later, which agrees best")


def test_every_head_is_tried() -> None:
    tried = list(readings([trace(*PAIRS[0])]))
    assert len(tried) == len(set(tried)) == 2 * (1 + 2 + 4)


def test_one_attention_leaves_nothing_to_choose() -> None:
    one = trace(*PAIRS[0])
    alone = Trace(one.source, one.target, [Attended("cross", one.attentions[0].weights[:1, :1])])
    assert best_reading([alone], PAIRS[:1], PAIRS) == Reading()


def test_means_and_single_heads() -> None:
    one = trace(*PAIRS[0])
    weights = one.attentions[0].weights
    np.testing.assert_allclose(Reading().weights(one), weights.mean((0, 1)))
    np.testing.assert_allclose(Reading(1).weights(one), weights[1].mean(0))
    np.testing.assert_allclose(Reading(1, 0).weights(one), weights[1, 0])
    np.testing.assert_allclose(Reading(head=1).weights(one), weights[:, 1].mean(0))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [(Reading(2), "layer: expected one of 0 … 1, got 2"), (Reading(0, 4), "head: expected one of 0 … 1, got 4")],
)
def test_a_head_that_is_not_there(wrong: Reading, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        wrong.weights(trace(*PAIRS[0]))
