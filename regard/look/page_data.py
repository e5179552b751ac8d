"""The JSON that a page holds for its script. Weights are quantized to bytes, 255 for a weight of `top`.

    {"moments": null, or [{"update", "epoch", "loss", "score"}, …],
     "traces": [for each moment, or once: [trace, …]],
     "cards": [{"lines": [[name, text], …], "confusion": null or {"labels", "counts"}}, …]}

A side has words, and units: its pieces, joined where a piece boundary would split a grapheme. Weights are given by
units, and by words where these differ.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.look.card_view import card_view
from regard.look.history import Moment
from regard.look.table import BLANK
from regard.look.trace import SIDES, AttentionWeights, Evidence, Matrix, Side, Trace, by_words
from regard.look.units import by_units, unit_spans, units

MAX_BYTE = 255  # the byte for a value of 1


def of_traces(traces: Sequence[Trace]) -> dict[str, Any]:
    """Return the content of a page of traces."""
    return _content(None, [traces])


def of_moments(moments: Sequence[Moment]) -> dict[str, Any]:
    """Return the content of a page of the validations of a run."""
    scores = [
        {"update": each.update} | {name: _number(getattr(each, name)) for name in ("epoch", "loss", "score")}
        for each in moments
    ]
    return _content(scores, [moment.traces for moment in moments])


def _content(moments: list[dict[str, Any]] | None, traces: Sequence[Sequence[Trace]]) -> dict[str, Any]:
    cards: list[Any] = []  # the distinct ones, which `_trace` collects
    by_moment = [[_trace(trace, cards) for trace in some] for some in traces]
    return {"moments": moments, "traces": by_moment, "cards": cards}


def _trace(trace: Trace, cards: list[Any]) -> dict[str, Any]:
    card = card_view(trace.model)
    if card not in cards:
        cards.append(card)
    return {
        "answer": "label" if any(each.name == "pool" for each in trace.attentions) else "text",
        "source": _side(trace.source, [term.source for term in trace.terms]),
        "target": _side(trace.target, [term.target for term in trace.terms]),
        "attentions": [_attention(trace, each) for each in trace.attentions],
        "steps": _steps(trace),
        "candidates": [[each.text, _number(each.score), _number(each.log_probability)] for each in trace.candidates],
        "evidence": [_evidence(each) for each in trace.evidence],
        "altered": [[each.name, each.text, _number(each.log_probability)] for each in trace.altered],
        "confidence": [_number(each) for each in trace.confidence],
        "card": cards.index(card),
    }


def _side(side: Side, terms: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Return a side; its units are [text between the previous unit and this one, own text]: joined, the whole text.
    `terms`: (start, end) of those of a glossary."""
    groups = units(side)
    parts: list[list[str]] = []
    reached = 0
    for unit in unit_spans(side):
        start = max(unit.start, reached)
        parts.append([side.text[reached:start], side.text[start : unit.end]])
        reached = max(unit.end, reached)
    return {
        "units": parts,
        "words": [word.text for word in side.words],
        "groups": [side.groups[groups.index(number)] for number in range(len(parts))],
        "terms": [
            number
            for number, word in enumerate(side.words)
            if any(word.start < end and word.end > start for start, end in terms)
        ],
        "ended": side.ended,
        "direction": side.direction,
        "language": side.language,
    }


def _attention(trace: Trace, given: AttentionWeights) -> dict[str, Any]:
    rows, columns = trace.sides(given.name)
    finer = by_units(given.weights, rows, columns)
    coarser = by_words(given.weights, rows, columns)
    # A label spreads its weight over a long text: quantized to 1/255, the weight of each word would become 0.
    top = max(float(coarser.max(initial=0)), 1e-6) if len(rows.words) == 1 else 1.0
    same = finer.shape == coarser.shape and np.allclose(finer, coarser, atol=1e-6)
    return {
        "name": given.name,
        "rows": SIDES[given.name][0],
        "columns": SIDES[given.name][1],
        "layers": given.weights.shape[0],
        "heads": given.weights.shape[1],
        "top": top,
        "units": _packed(finer / top),
        "words": None if same else _packed(coarser / top),
    }


def _steps(trace: Trace) -> list[list[Any]]:
    """Return for each unit of the target its steps: [piece, probability, [[alternative, its probability], …]]."""
    groups = units(trace.target)
    end = len(groups) - 1 if trace.target.ended else None
    steps: list[list[Any]] = [[] for _ in range(groups[-1] + 1 if groups and trace.steps else 0)]
    for place, (step, piece, number) in enumerate(zip(trace.steps, trace.target.pieces, groups, strict=False)):
        text = piece.text or ("" if place == end else BLANK)
        others = [[text, _number(probability, 6)] for text, probability in step.others]
        steps[number].append([text, _number(step.probability, 6), others])
    return steps


def _evidence(given: Evidence) -> dict[str, Any]:
    low, high = min(0.0, float(given.values.min(initial=0))), max(0.0, float(given.values.max(initial=0)))
    return {
        "name": given.name,
        "agreement": _number(given.agreement),
        "low": low,
        "high": high,
        "values": _packed((given.values - low) / (high - low or 1)),
    }


def _packed(values: Matrix) -> str:
    """Return values from 0 to 1 as bytes in base64."""
    quantized = np.rint(np.clip(np.nan_to_num(values), 0, 1) * MAX_BYTE).astype(np.uint8)
    return base64.b64encode(quantized.tobytes()).decode("ascii")


def _number(value: float, digits: int = 4) -> float | None:
    """Return a rounded number, or None for NaN and infinity, which JSON does not have."""
    return round(float(value), digits) if math.isfinite(value) else None
