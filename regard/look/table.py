"""A table of attention weights with its labels. All views of a trace show one; drawing is up to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, TypeVar

import numpy as np

from regard.look.trace import SIDES, AttentionWeights, Evidence, Matrix, Trace, by_words
from regard.look.units import by_units, unit_spans
from regard.look.words import Span
from regard.text.boundaries import Direction

END = "⏹"  # the symbol for the end token, which also attends and can be attended to
BLANK = "␣"  # the symbol for a piece without visible text
Named = TypeVar("Named", AttentionWeights, Evidence)


@dataclass(frozen=True)
class Table:
    """The weights with which each row (query) attends to the columns (keys)."""

    rows: Sequence[str]
    columns: Sequence[str]
    weights: Matrix  # [rows, columns]
    row_direction: Direction = "ltr"
    column_direction: Direction = "ltr"
    title: Sequence[str] = ()  # what is shown, in parts: ("cross attention", "layer 0", "mean of 8 heads")
    footnotes: Sequence[str] = ()
    top: float = 1.0  # the weight that is shown at full strength

    def __post_init__(self) -> None:
        shape = (len(self.rows), len(self.columns))
        if self.weights.shape != shape:
            raise ValueError(f"weights: expected {shape}, as there are labels, got {self.weights.shape}")
        if not self.top > 0:
            raise ValueError(f"top: expected a number above 0, got {self.top}")

    @property
    def fractions(self) -> Matrix:
        """[rows, columns]: the weights as fractions of `top`, from 0 to 1."""
        return np.asarray(np.clip(self.weights / self.top, 0, 1), np.float32)


class TableOptions(TypedDict, total=False):
    """The arguments of `table`: what is shown of a trace."""

    attention: str | None
    layer: int | None
    head: int | None
    pieces: bool
    evidence: str | None


def table(
    trace: Trace,
    *,
    attention: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    pieces: bool = False,
    evidence: str | None = None,
) -> Table:
    """Return the table of one attention of a trace, by words or by pieces; without a layer or head, the mean over them.

    Without a name of an attention it is `trace.default_attention`. `evidence` names the evidence to show instead of the
    weights; it is by words, and of no single layer or head.
    """
    attention = attention or trace.default_attention
    if evidence is not None:
        return _of_evidence(trace, attention, layer, head, pieces, evidence)
    all_weights = _named("attention", trace.attentions, attention).weights
    layers, heads = all_weights.shape[:2]
    weights = mean_weights(all_weights, layer, head)
    queries, keys = trace.sides(attention)
    title = [f"{attention} attention", _title_part("layer", layer, layers), _title_part("head", head, heads)]
    is_mean = (layer is None or layers == 1) and (head is None or heads == 1)
    if pieces:
        rows, columns, between = unit_spans(queries), unit_spans(keys), by_units(weights, queries, keys)
    else:
        rows, columns, between = queries.words, keys.words, by_words(weights, queries, keys)
    return Table(
        _labels(rows),
        _labels(columns),
        between,
        queries.direction,
        keys.direction,
        tuple(part for part in title if part),
        # Agreement was measured with the mean of all heads, so it does not apply to one of several.
        tuple(map(agreement, trace.evidence)) if is_mean and SIDES[attention] == ("target", "source") else (),
    )


def mean_weights(weights: Matrix, layer: int | None, head: int | None) -> Matrix:
    """Return the weights [rows, columns] of one layer and head of [layers, heads, rows, columns]; None: their mean."""
    layers, heads = weights.shape[:2]
    chosen = weights[_chosen("layer", layer, layers)][:, _chosen("head", head, heads)]
    return np.asarray(chosen.mean((0, 1)), np.float32)


def agreement(evidence: Evidence) -> str:
    """Return the agreement of the evidence with the weights, as a footnote."""
    return f"agreement with {evidence.name}: {evidence.agreement:.2f}"


def strongest(table: Table, count: int) -> list[tuple[int, int, float]]:
    """Return (row, column, weight) of each row's `count` largest weights, the largest first, ties by column."""
    if count < 1:
        raise ValueError(f"count: expected at least 1, got {count}")
    order = np.argsort(-table.weights, axis=1, kind="stable")[:, :count]
    return [
        (row, column, float(table.weights[row, column]))
        for row, columns in enumerate(order.tolist())
        for column in columns
    ]


def _of_evidence(trace: Trace, attention: str, layer: int | None, head: int | None, pieces: bool, name: str) -> Table:
    evidence = _named("evidence", trace.evidence, name)
    if pieces or layer is not None or head is not None or SIDES.get(attention) != ("target", "source"):
        raise ValueError(
            f"evidence: {name!r} is by words, of what the target looks at in the source, and of no single layer or "
            f"head; got attention={attention!r}, layer={layer}, head={head}, pieces={pieces}"
        )
    return Table(
        _labels(trace.target.words),
        _labels(trace.source.words),
        evidence.values,
        trace.target.direction,
        trace.source.direction,
        (name,),
        (f"agreement with the attention: {evidence.agreement:.2f}",),
        max(float(evidence.values.max(initial=0)), 1e-6),
    )


def visible(text: str) -> str:
    """Return the text with symbols for control characters, and U+FFFD for code points that no text should contain."""
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    forbidden = 0x7F <= code <= 0x9F or 0xD800 <= code <= 0xDFFF or code & 0xFFFE == 0xFFFE
    return "\ufffd" if forbidden else character


def _named(what: str, among: Sequence[Named], name: str) -> Named:
    """Return the attention or evidence of that name."""
    for each in among:
        if each.name == name:
            return each
    names = ", ".join(repr(each.name) for each in among)
    raise ValueError(
        f"{what}: expected {f'one of {names}' if names else 'none, for this trace has none'}, got {name!r}"
    )


def _chosen(what: str, number: int | None, count: int) -> slice:
    """Return the slice of one layer or head, or of all for None."""
    if number is None:
        return slice(None)
    if not 0 <= number < count:
        raise ValueError(f"{what}: expected {f'0 to {count - 1}' if count > 1 else 'only 0'}, got {number}")
    return slice(number, number + 1)


def _title_part(what: str, number: int | None, count: int) -> str:
    """Return the part of a title that names the layer or head; nothing where there is only one."""
    if count == 1:
        return ""
    return f"mean of {count} {what}s" if number is None else f"{what} {number}"


def _labels(spans: Sequence[Span]) -> tuple[str, ...]:
    labels = [span.text.strip() or BLANK for span in spans]
    if spans and not spans[-1].text:
        labels[-1] = END
    return tuple(labels)
