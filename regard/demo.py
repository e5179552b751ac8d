"""Attention at work in the terminal: one sentence through the three stages, then patterns drawn."""

from __future__ import annotations

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from regard.core.attention import attention, plan
from regard.core.normalizers import Entmax15, Hard, Normalizer, Softmax, Sparsemax
from regard.core.pattern_text import parse
from regard.core.scores import Additive, Cosine, Dot, General, ScaledDot, Score

FEATURES = ("person", "praise", "child", "being")
# Written by hand, so that every number below can be checked by eye.
SOURCE = {
    "Rahul": (3.0, 0.0, 0.5, 0.0),
    "is": (0.0, 0.0, 0.0, 3.0),
    "a": (0.0, 0.0, 0.2, 0.2),
    "good": (0.0, 3.0, 0.0, 0.0),
    "boy": (1.0, 0.0, 3.0, 0.0),
}
TARGET = {
    "राहुल": (2.0, 0.0, 0.0, 0.0),
    "चांगला": (0.0, 2.0, 0.3, 0.0),
    "मुलगा": (0.5, 0.0, 2.0, 0.0),
    "आहे": (0.0, 0.0, 0.0, 2.0),
}
PATTERNS = (
    "causal",
    "window(2)",
    "strided(4)",
    "dilated(2, 3)",
    "window(1) | global(0)",
    "longformer(4, [0, 8]) & causal",
    "bigbird(4, [0, 1], random=1, block=4)",
    "blocks([[0], [0, 1], [2], [1, 3]], 4)",
)


def run(console: Console) -> None:
    """The whole walk."""
    console.print("\n[bold]Rahul is a good boy → राहुल चांगला मुलगा आहे[/bold]")
    console.print(
        f"Each word is a small vector of hand-written features ({', '.join(FEATURES)}). Nothing is trained here: "
        "watch what attention does with them. The query is one word of the translation, the keys and values are "
        "the words of the source.\n"
    )
    _stages(console)
    _scores(console)
    _normalizers(console)
    _patterns(console)
    console.print(
        "Next: [bold]regard pattern 'window(4) | global(0)' -n 32[/bold] draws a pattern of yours; README.md shows "
        "[bold]attention(query, key, value, score=…, pattern=…, normalizer=…)[/bold] in Python."
    )


def _tensors() -> tuple[Tensor, Tensor]:
    """(queries [4, 4], keys [5, 4])"""
    return torch.tensor(list(TARGET.values())), torch.tensor(list(SOURCE.values()))


def _stages(console: Console) -> None:
    """Scores, weights, weighted sum, for every word of the translation."""
    queries, keys = _tensors()
    out = attention(queries, keys, keys, score=ScaledDot(), weights=True)
    assert out.weights is not None
    console.print("[bold]1  Scores:[/bold] how well does the query fit each key? Here qᵀk / √d:")
    console.print(_grid(ScaledDot().energies(queries, keys), shade=False))
    console.print("[bold]2  Weights:[/bold] softmax makes each row positive, with sum 1:")
    console.print(_grid(out.weights))
    console.print("[bold]3  Weighted sum:[/bold] the context, Σ weight · value, is what the query gets to see:")
    context = Table(box=None)
    for name in ("", *FEATURES):
        context.add_column(name, justify="right" if name else "left")
    for word, row in zip(TARGET, out.context.tolist(), strict=True):
        context.add_row(word, *(f"{x:.2f}" for x in row))
    console.print(context)
    console.print()


def _scores(console: Console) -> None:
    """The same query under every score."""
    queries, keys = _tensors()
    console.print("[bold]The same query, चांगला, under five scores[/bold] (weights by softmax):")
    scores: dict[str, Score] = {
        "dot          qᵀk": Dot(),
        "scaled dot   qᵀk / √d": ScaledDot(),
        "cosine       4 · cos(q, k)": Cosine(tau=4.0),
        "general      qᵀWk, W = ½": _general(),
        "additive     vᵀ tanh(q + k − 3), v = 3": _additive(),
    }
    rows = {name: _weights(queries[1:2], keys, score, Softmax()) for name, score in scores.items()}
    console.print(_grid(torch.cat(list(rows.values())), list(rows)))
    console.print()


def _normalizers(console: Console) -> None:
    """The same energies under every normalizer."""
    queries, keys = _tensors()
    console.print("[bold]The same query, मुलगा, under four normalizers[/bold] (scores by 2 · cos(q, k)):")
    normalizers: dict[str, Normalizer] = {
        "softmax      all keys, a little": Softmax(),
        "entmax15     few keys": Entmax15(),
        "sparsemax    fewer": Sparsemax(),
        "hard         one": Hard(),
    }
    rows = {name: _weights(queries[2:3], keys, Cosine(tau=2.0), way) for name, way in normalizers.items()}
    console.print(_grid(torch.cat(list(rows.values())), list(rows)))
    console.print()


def _patterns(console: Console) -> None:
    """Patterns, and what computing them costs."""
    console.print("[bold]Patterns[/bold]: a row a query, a column a key, ■ where it may look:\n")
    for pair in zip(PATTERNS[::2], PATTERNS[1::2], strict=True):
        console.print("".join(f"[bold]{text:39}[/bold]" for text in pair))
        drawings = [parse(text).draw(16).splitlines() for text in pair]
        for left, right in zip(*drawings, strict=True):
            console.print(f"{left:39}{right}", markup=False)
        console.print()
    states = torch.zeros(1, 8, 8192, 64)
    console.print("[bold]What a pattern costs[/bold]: plan(...).explain() for 8,192 positions and 8 heads:")
    explained = plan(states, states, states, pattern="longformer(512, 0:64, stride=64)").explain()
    console.print(explained, markup=False, soft_wrap=True)
    console.print()


def _weights(query: Tensor, keys: Tensor, score: Score, normalizer: Normalizer) -> Tensor:
    out = attention(query, keys, keys, score=score, normalizer=normalizer, weights=True)
    assert out.weights is not None
    return out.weights.detach()


def _general() -> General:
    score = General(4, 4)
    torch.nn.init.eye_(score.weight).data.mul_(0.5)
    return score


def _additive() -> Additive:
    score = Additive(None, None, 4, bias=True)
    assert score.bias is not None
    torch.nn.init.constant_(score.vector, 3.0)
    torch.nn.init.constant_(score.bias, -3.0)  # so that only what both have gets through
    return score


def _grid(numbers: Tensor, names: list[str] | None = None, shade: bool = True) -> Table:
    """Rows of numbers under the words of the source; weights are shaded."""
    table = Table(box=None)
    for name in ("", *SOURCE):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for name, row in zip(names or list(TARGET), numbers.tolist(), strict=True):
        table.add_row(name, *(f"{_bar(x)} {x:.2f}" if shade else f"{x:.2f}" for x in row))
    return table


def _bar(weight: float) -> str:
    """One of eight heights: a weight of 1 fills the cell."""
    return " ▁▂▃▄▅▆▇█"[min(8, round(weight * 8))]
