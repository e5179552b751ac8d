"""`attention()`, in which score, pattern and normalizer are chosen freely, and the module `Attention`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar, Unpack

import torch
from torch import Tensor, nn

from regard.core import request as requests
from regard.core.checks import fraction
from regard.core.local import LocalPredictive
from regard.core.memory import Memory
from regard.core.normalizers import Entmax, Entmax15, Hard, Normalizer, Softmax, Sparsemax
from regard.core.observe import check_extras, run_with_outputs
from regard.core.pattern_text import parse
from regard.core.patterns import Full, Pattern
from regard.core.plan import Plan, choose
from regard.core.request import CallOptions, Lengths, ReadOptions
from regard.core.result import Result
from regard.core.scores import Cosine, Dot, ScaledDot, Score
from regard.runtime.caches import cached

SCORES: Mapping[str, type[Score]] = {"dot": Dot, "scaled_dot": ScaledDot, "cosine": Cosine}
NORMALIZERS: Mapping[str, type[Normalizer]] = {
    "softmax": Softmax, "sparsemax": Sparsemax, "entmax15": Entmax15, "hard": Hard
}  # fmt: skip
_Named = TypeVar("_Named", Score, Normalizer)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: Score | str = "scaled_dot",
    pattern: Pattern | LocalPredictive | str = Full(),  # noqa: B008, a frozen value
    normalizer: Normalizer | str = Softmax(),  # noqa: B008, a frozen value
    bias: Tensor | None = None,
    lengths: Lengths | None = None,
    allowed: Tensor | None = None,
    position: int = 0,
    dropout: float = 0.0,
    weights: bool = False,
    top: int | None = None,
    lse: bool = False,
    generator: torch.Generator | None = None,
) -> Result:
    """Return for each query the weighted sum of the values, with weights from how well query and keys fit.

        energies = score(query, key) + bias,      weights = normalizer(energies),      context = weights · value

    query [..., T, Dq], key [..., S, Dk], value [..., S, Dv]; the leading dims broadcast, the last of them are heads.

    score       how well a query and a key fit: a `Score`, or "dot", "scaled_dot", "cosine"
    pattern     which keys a query may attend to: a pattern, or text such as "window(4) | global(0)"
    normalizer  how energies become weights: a `Normalizer`, or "softmax", "sparsemax", "entmax15", "hard"
    bias        added to the energies; floating, broadcasts to [..., T, S]
    lengths     how many keys are real (not padding); integers whose shape is a prefix of the leading dims
    allowed     attention mask, True: may attend; bool, broadcasts to [..., T, S]
    position    of the first query: query t is at position + t, key j at j
    dropout     the fraction of weights set to 0 before the sum
    weights, top, lse    also return all weights, the `top` largest ones, log Σ exp of the energies
    generator   random generator for dropout and samples

    A query that may attend to nothing gets context 0, weights 0, lse −inf.
    """
    parts = read_score(score), read_pattern(pattern), read_normalizer(normalizer)
    check_extras(top, lse, parts[-1])
    options = CallOptions(*parts, bias, allowed, position, dropout, generator)
    return run_with_outputs(choose(requests.read(query, key, value, options, lengths)), weights, top, lse)


def plan(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: Score | str = "scaled_dot",
    pattern: Pattern | LocalPredictive | str = Full(),  # noqa: B008, a frozen value
    normalizer: Normalizer | str = Softmax(),  # noqa: B008, a frozen value
    bias: Tensor | None = None,
    lengths: Lengths | None = None,
    allowed: Tensor | None = None,
    position: int = 0,
    dropout: float = 0.0,
) -> Plan:
    """Return which kernel `attention` would use for the same arguments; `print(plan(...).explain())` says why."""
    # A separate generator: planning must not advance the caller's random numbers.
    parts = read_score(score), read_pattern(pattern), read_normalizer(normalizer)
    options = CallOptions(*parts, bias, allowed, position, dropout, torch.Generator())
    return choose(requests.read(query, key, value, options, lengths))


class Attention(nn.Module):
    """Attention as a module: it owns the parameters of score, pattern and normalizer, and has no state between calls.

    A `Hard` normalizer samples while the module is in training mode and takes the argmax otherwise; dropout likewise is
    active only in training.
    """

    def __init__(
        self,
        score: Score | str = "scaled_dot",
        pattern: Pattern | LocalPredictive | str = Full(),  # noqa: B008, a frozen value
        normalizer: Normalizer | str = Softmax(),  # noqa: B008, a frozen value
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.score = read_score(score)
        self.pattern = read_pattern(pattern)
        self.normalizer = read_normalizer(normalizer)
        self.dropout = fraction("dropout", dropout)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor | None = None,
        *,
        lengths: Lengths | None = None,
        **options: Unpack[ReadOptions],
    ) -> Result:
        """Compute `attention` with the module's parts; `value` defaults to `key`."""
        return attention(
            query,
            key,
            key if value is None else value,
            score=self.score,
            pattern=self.pattern,
            normalizer=self.active_normalizer,
            dropout=self.active_dropout,
            lengths=lengths,
            **options,
        )

    @property
    def active_normalizer(self) -> Normalizer:
        """The normalizer in the current mode: estimators that sample do so only in training."""
        hard = self.normalizer
        if isinstance(hard, Hard) and hard.estimator != "straight_through":
            return replace(hard, sample=self.training)
        return hard

    @property
    def active_dropout(self) -> float:
        """The dropout in the current mode: 0 outside training."""
        return self.dropout if self.training else 0.0

    def remember(self, key: Tensor, value: Tensor | None = None, lengths: Lengths | None = None) -> Memory:
        """Project the keys once, to be read by many queries, as a decoder does at every step.

        Reads are fastest in the grad mode and autocast in which this is called; they are right in any.
        """
        return Memory.of(self, key, key if value is None else value, lengths).prepare()

    def extra_repr(self) -> str:
        pattern = "" if isinstance(self.pattern, nn.Module) else f"pattern={self.pattern}, "
        return f"{pattern}normalizer={self.normalizer}, dropout={self.dropout}"


_parsed = cached(maxsize=256, reason="parsing a pattern's text takes as long as a small attention()")(parse)


def read_score(score: Score | str) -> Score:
    """Return the score, which may be given as the name of one without parameters."""
    return _by_name("score", score, Score, SCORES)  # type: ignore[type-abstract]


def read_normalizer(normalizer: Normalizer | str) -> Normalizer:
    """Return the normalizer, which may be given by name."""
    read = _by_name("normalizer", normalizer, Normalizer, NORMALIZERS)
    if not isinstance(read, (Entmax, Hard)):
        raise TypeError(f"normalizer: expected a subclass of Entmax, got {_describe(read)}")
    return read


def read_pattern(pattern: Pattern | LocalPredictive | str) -> Pattern | LocalPredictive:
    """Return the pattern, which may be given as text."""
    if isinstance(pattern, str):
        return parse(pattern) if torch.compiler.is_compiling() else _parsed(pattern)
    if not isinstance(pattern, (Pattern, LocalPredictive)):
        raise TypeError(f"pattern: expected a pattern or its text, got {_describe(pattern)}")
    return pattern


def _by_name(argument: str, given: _Named | str, kind: type[_Named], names: Mapping[str, type[_Named]]) -> _Named:
    """Return an instance of `kind`: the given one, or a new one of the class with the given name."""
    if isinstance(given, str):
        if given not in names:
            near = difflib.get_close_matches(given, names, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            if given in ("general", "additive"):
                hint = f": it has parameters, make it once with {given.title()}(query_dim, key_dim, …)"
            raise ValueError(f"{argument}: expected one of {', '.join(map(repr, names))}, got {given!r}{hint}")
        return names[given]()
    if not isinstance(given, kind):
        raise TypeError(f"{argument}: expected a {kind.__name__} or its name, got {_describe(given)}")
    return given


def _describe(given: object) -> str:
    """Describe an argument in an error message; a class that was not instantiated is a likely mistake."""
    return f"the class {given.__name__}: write {given.__name__}(…)" if isinstance(given, type) else repr(given)
