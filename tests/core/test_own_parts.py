"""A pattern and a score of a user's own, wherever one of ours may stand; and what is said when they are wrong."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from regard import (
    Attention,
    Causal,
    FeatureAdditive,
    Full,
    LocalPredictive,
    MultiHead,
    Pattern,
    Score,
    Sparsemax,
    attention,
    featurewise,
    per_head,
    plan,
)
from regard.core.scores import BilinearTerms

Q = torch.randn(2, 2, 6, 4)


class Even(Pattern):
    """The least that a pattern needs."""

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        return (i + j) % 2 == 0


@dataclass(frozen=True)
class Every(Pattern):
    """A frozen value, with a representation of dataclass's own."""

    step_of: int

    def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
        return (i - j) % self.step_of == 0


class Distance(Score):
    def energies(self, query: Tensor, key: Tensor) -> Tensor:
        return -torch.cdist(query, key)


OWN = [Even(), Every(3), Even() & Causal(), Every(2) | Causal(), per_head([Even(), Causal()]), Even() & Even()]


@pytest.mark.parametrize("pattern", OWN, ids=str)
def test_own_pattern_everywhere(pattern: Pattern) -> None:
    expected = torch.softmax((Q @ Q.mT / 2).masked_fill(~pattern.mask(6, 6), -torch.inf), -1)
    out = attention(Q, Q, Q, pattern=pattern, weights=True, top=2, lse=True)
    torch.testing.assert_close(out.weights, expected)
    torch.testing.assert_close(out.context, expected @ Q)
    planned = plan(Q, Q, Q, pattern=pattern)
    assert str(pattern) in planned.explain() and str(pattern) in repr(planned)
    assert repr(pattern) == str(pattern) and "■" in pattern.draw(6)
    assert str(pattern) in repr(Attention(pattern=pattern)) and repr(MultiHead(8, 2, pattern=pattern))
    module = MultiHead(8, 2, pattern=pattern)
    x = torch.randn(3, 5, 8)
    steps = [module.remember(x).read(x[:, t : t + 1], position=t).context for t in range(5)]
    torch.testing.assert_close(torch.cat(steps, 1), module(x).context)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("normalizer", ["softmax", "sparsemax", "hard"])
@pytest.mark.parametrize("size", [6, 200])
def test_own_pattern_on_every_kernel(normalizer: str, size: int) -> None:
    x = torch.randn(2, size, 4)
    mask = Even().mask(size, size)
    out = attention(x, x, x, pattern=Even(), normalizer=normalizer, weights=True)
    torch.testing.assert_close(
        out.weights, attention(x, x, x, allowed=mask, normalizer=normalizer, weights=True).weights
    )


@pytest.mark.parametrize("pattern", [Full(), Causal(), Even(), per_head([Even(), Causal()]), LocalPredictive(4, 2)])
def test_own_score_everywhere(pattern: Pattern) -> None:
    out = attention(Q, Q, Q, score=Distance(), pattern=pattern, normalizer=Sparsemax(), weights=True, top=1)
    assert out.weights is not None and out.context.shape == Q.shape
    assert "Distance" in plan(Q, Q, Q, score=Distance(), pattern=pattern).explain()
    if not isinstance(pattern, LocalPredictive):
        memory = Attention(Distance(), pattern, Sparsemax()).remember(Q)
        torch.testing.assert_close(memory.read(Q).context, out.context)
        assert MultiHead(8, 2, score=Distance(), pattern=pattern)(torch.randn(3, 5, 8)).context.shape == (3, 5, 8)


def test_text_of_own_patterns() -> None:
    assert repr(Even()) == str(Even()) == "Even()"
    assert repr(Every(3)) == str(Every(3)) == "Every(step_of=3)"
    assert str((Even() | Causal()) & Every(2)) == "(Even() | causal) & Every(step_of=2)"

    class Table(Even):
        def __init__(self, table: Tensor) -> None:
            self.table, self.many = table, list(range(1000))

    assert str(Table(torch.ones(7, 7))) == "Table(table=tensor [7, 7], many=[0, 1, 2, 3, 4, 5, ...])"


def test_a_plan_is_one_short_line() -> None:
    long = Every(2) | per_head([Even(), Causal()]) & Every(7) | Every(11) | Every(13)
    for pattern in (Full(), Even(), long):
        shown = repr(plan(Q, Q, Q, pattern=pattern, lengths=[6, 2]))
        assert shown.startswith("<Plan: ") and "\n" not in shown and len(shown) < 200
        assert len(repr(plan(Q, Q, Q, pattern=pattern).request)) < 200


WRONG = {
    "a tensor": (lambda i, j: True, "got bool"),
    "bool": (lambda i, j: (i - j) % 2, r"got torch.int64 \[2, 3\]"),
    "the shape": (lambda i, j: j % 2 == 0, r"got torch.bool \[1, 3\]"),
    "several classes": (lambda i, j: i.view(-1, 1) >= j.view(1, -1), r"expected a bool tensor \[1, 1, 2, 3\]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_patterns_are_named(name: str) -> None:
    allows, message = WRONG[name]

    class Wrong(Pattern):
        def allows(self, i: Tensor, j: Tensor, size: int) -> Tensor:
            return allows(i, j)

    x = torch.randn(6, 4)
    inside = LocalPredictive(4, 2) & Wrong()
    for pattern in (Wrong(), Wrong() & Causal(), Causal() | Wrong(), inside):
        with pytest.raises(TypeError, match="pattern: Wrong.allows: .*" + message):
            attention(x, x, x, pattern=pattern)
    for fails in (
        lambda: Wrong().draw(6),
        lambda: featurewise(x, x, x, score=FeatureAdditive(4, 4, 4), pattern=Wrong()),
        lambda: MultiHead(8, 2, pattern=per_head([Causal(), Wrong()]))(torch.randn(5, 8)),
    ):
        with pytest.raises(TypeError, match=r"pattern: Wrong.allows: expected a bool tensor"):
            fails()


def test_a_pattern_that_cannot_be_hashed_is_named() -> None:
    @dataclass
    class Loose(Even):
        n: int = 1

    x = torch.randn(6, 4)
    for fails in (
        lambda: attention(x, x, x, pattern=Loose()),
        lambda: Loose() & Causal(),
        lambda: per_head([Loose()]),
    ):
        with pytest.raises(TypeError, match="pattern: expected Loose to be hashable, as a frozen dataclass is"):
            fails()


@pytest.mark.parametrize(
    ("energies", "error", "message"),
    [
        (lambda q, k: 0.0, TypeError, r"expected a tensor \[..., T, S\], got float"),
        (lambda q, k: (q @ k.mT).long(), TypeError, "expected floating-point numbers, got torch.int64"),
        (lambda q, k: q @ k.mT > 0, TypeError, "expected floating-point numbers, got torch.bool"),
        (lambda q, k: (q @ k.mT).mT, ValueError, r"expected \[2, 3, 5\] \(\[..., T, S\]\), got \[2, 5, 3\]"),
        (lambda q, k: q.sum(-1), ValueError, r"expected \[2, 3, 5\] \(\[..., T, S\]\), got \[2, 3\]"),
        (lambda q, k: (q @ k.mT).expand(7, 2, 3, 5), ValueError, r".* got \[7, 2, 3, 5\]"),
    ],
)
def test_wrong_energies_are_named(energies, error, message: str) -> None:
    class Wrong(Score):
        def energies(self, query: Tensor, key: Tensor) -> Tensor:
            return energies(query, key)

    query, key = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    with pytest.raises(error, match="score: Wrong.energies: " + message):
        attention(query, key, key, score=Wrong())
    with pytest.raises(error, match="score: Wrong.energies: " + message):
        Attention(Wrong()).remember(key).read(query)


@pytest.mark.parametrize(
    ("terms", "error", "message"),
    [
        (lambda q, k: (q, k), TypeError, "expected BilinearTerms or AdditiveTerms, got tuple"),
        (lambda q, k: None, TypeError, "got NoneType; a score of neither family leaves `terms` undefined"),
        (lambda q, k: BilinearTerms(q[..., :2], k, 1.0), ValueError, r"expected q' \[..., 1, D\] and k' \[..., 5, D\]"),
    ],
)
def test_wrong_terms_are_named(terms, error, message: str) -> None:
    class Wrong(Score):
        def energies(self, query: Tensor, key: Tensor) -> Tensor:
            return query @ key.mT

        def terms(self, query: Tensor, key_side: Tensor) -> BilinearTerms:
            return terms(query, key_side)

    query, key = torch.randn(2, 1, 4), torch.randn(2, 5, 4)
    with pytest.raises(error, match="score: Wrong.terms: .*" + message.replace("expected q", ".*q")):
        attention(query, key, key, score=Wrong())
    with pytest.raises(error, match=r"score: Wrong\.terms"):
        Attention(Wrong()).remember(key).read(query)


def test_energies_that_broadcast_are_right() -> None:
    class Shared(Score):
        def energies(self, query: Tensor, key: Tensor) -> Tensor:
            return (query @ key.mT).mean(0, keepdim=True)

    x = torch.randn(2, 3, 4)
    torch.testing.assert_close(
        attention(x, x, x, score=Shared(), weights=True).weights, torch.softmax((x @ x.mT).mean(0), -1).expand(2, 3, 3)
    )
