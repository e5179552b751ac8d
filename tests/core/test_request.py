"""Bad input raises one error that names the argument, what came and what was expected."""

import pytest
import torch

from regard import (
    Additive,
    Causal,
    General,
    Global,
    Hard,
    LocalPredictive,
    Normalizer,
    Sparsemax,
    Window,
    attention,
    per_head,
    plan,
)

Q, K, V = torch.zeros(2, 3, 5, 4), torch.zeros(2, 3, 6, 4), torch.zeros(2, 3, 6, 7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": [1.0]}, "query: expected a tensor, got list"),
        ({"query": torch.zeros(4)}, r"query: expected at least 2 dims \[..., positions, features\], got \[4\]"),
        ({"key": K.long()}, "key: expected floating-point numbers, got torch.int64"),
        ({"value": V.double()}, "value: expected torch.float32 on cpu like query, got torch.float64"),
        ({"key": torch.zeros(2, 3, 6, 9)}, r"key: expected 4 features like query for ScaledDot, got \[2, 3, 6, 9\]"),
        ({"value": V[..., :2, :]}, "value: expected 6 positions like key, got 2"),
        ({"key": torch.zeros(5, 3, 6, 4)}, r"leading dims that broadcast, got \[2, 3\] and \[5, 3\]"),
        ({"score": General(8, 4)}, r"query: expected 8 features for General, got \[2, 3, 5, 4\]"),
        ({"score": Additive(4, 9, 5)}, "key: expected 9 features for Additive"),
        ({"score": General(4, 4, heads=2)}, r"score: made for 2 heads \(the last leading dim\), got 3 in \[2, 3\]"),
        ({"pattern": per_head([Window(1)] * 4)}, "pattern: made for 4 heads"),
        ({"score": "scaled"}, r"score: expected one of 'dot', .* got 'scaled' \(did you mean 'scaled_dot'\?\)"),
        ({"normalizer": "softmx"}, r"normalizer: expected one of .* got 'softmx' \(did you mean 'softmax'\?\)"),
        ({"pattern": "window(x)"}, "pattern: unknown name 'x'"),
        ({"pattern": 4}, "pattern: expected a pattern or its text, got 4"),
        ({"score": 3}, "score: expected a Score or its name, got 3"),
        ({"bias": torch.zeros(5, 6).bool()}, "bias: expected floating-point .* a mask of bool goes to `allowed`"),
        ({"bias": torch.zeros(5, 5)}, r"bias: expected a shape that broadcasts to \[2, 3, 5, 6\] .* got \[5, 5\]"),
        ({"bias": torch.zeros(7, 2, 3, 5, 6)}, "bias: expected a shape"),
        ({"bias": 1.0}, "bias: expected a tensor, got float"),
        ({"allowed": torch.ones(5, 6)}, r"allowed: expected bool \(True: may look\), got torch.float32"),
        ({"allowed": torch.ones(4, 6).bool()}, r"allowed: expected a shape that broadcasts .* got \[4, 6\]"),
        ({"lengths": [1.0, 2.0]}, "lengths: expected integers, got torch.float32"),
        ({"lengths": [1, 7]}, r"lengths: expected 0 … 6 \(the number of keys\), got 1 … 7"),
        ({"lengths": [-1, 2]}, "lengths: expected 0 … 6"),
        ({"lengths": [1, 2, 3]}, r"lengths: expected a shape that begins like the leading dims \[2, 3\], got \[3\]"),
        ({"position": -1}, "position: expected a whole number ≥ 0, got -1"),
        ({"position": 1.5}, "position: expected a whole number ≥ 0, got 1.5"),
        ({"dropout": 1.0}, r"dropout: expected a number in \[0, 1\), got 1.0"),
        ({"top": 0}, "top: expected a whole number ≥ 1, got 0"),
        ({"top": True}, "top: expected a whole number ≥ 1, got True"),
        ({"dropout": "0.1"}, r"dropout: expected a number in \[0, 1\), got '0.1'"),
        ({"lengths": [None, 1]}, r"lengths: expected integers, got \[None, 1\]"),
        ({"generator": 3, "dropout": 0.1}, "generator: expected a torch.Generator, got int"),
        ({"pattern": Causal}, r"pattern: expected a pattern or its text, got the class Causal: write Causal\(…\)"),
        ({"score": "additive"}, r"score: .* got 'additive': it has parameters, make it once with Additive\("),
        ({"score": General(4, 4).double()}, "score: expected parameters in torch.float32 .* got torch.float64"),
        ({"normalizer": Normalizer()}, "normalizer: expected a subclass of Entmax"),
        ({"pattern": LocalPredictive(3, 2)}, "query: expected 3 features for LocalPredictive"),
        ({"lse": True, "normalizer": Sparsemax()}, "lse: only Softmax has one, got Sparsemax"),
        ({"lse": True, "normalizer": Hard()}, "lse: only Softmax has one, got Hard"),
    ],
)
def test_bad_input_is_named(arguments: dict, message: str) -> None:
    given = {"query": Q, "key": K, "value": V} | arguments
    with pytest.raises((ValueError, TypeError), match=message):
        attention(given.pop("query"), given.pop("key"), given.pop("value"), **given)


def test_plan_reads_the_same_way() -> None:
    with pytest.raises(ValueError, match="lengths: expected"):
        plan(Q, K, V, lengths=[9, 9], pattern=Global([0]))
