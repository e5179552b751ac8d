"""The card of a model as a person reads it: short lines, and the confusion matrix of a classifier as a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

SCORES = (
    *(("chrf", "chrF++", 1, ""), ("bleu", "BLEU", 1, ""), ("ter", "TER", 1, ""), ("exact", "exact match", 0, " %")),
    *(("accuracy", "accuracy", 1, " %"), ("macro_f1", "macro-F1", 1, ""), ("log_loss", "log loss", 3, "")),
)
"""name in a card → name that people use, digits, unit"""
COUNTED = {"sources": "sentences", "texts": "texts"}  # what scores were computed on
MAX_LABELS = 30  # labels of a confusion matrix that is shown
MAX_LISTED = 12  # items of a list that are shown


def card_view(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return {"lines": [[name, text], …], "confusion": None or {"labels", "counts": [expected][predicted]}}."""
    lines = []
    for name, value in card.items():
        title, write = _LINES.get(name, (name, _text))
        text = write(value)
        if text:
            lines.append([title, text])
    return {"lines": lines, "confusion": _confusion(card.get("scores"))}


def _confusion(scores: Any) -> dict[str, Any] | None:
    """Return the confusion matrix of a classifier's scores; None if there is none, or too large a one."""
    if not isinstance(scores, dict):
        return None
    labels, counts = scores.get("labels"), scores.get("confusion")
    if not isinstance(labels, list) or not isinstance(counts, list) or not 0 < len(labels) <= MAX_LABELS:
        return None
    whole = all(isinstance(row, list) and len(row) == len(labels) for row in counts) and len(counts) == len(labels)
    if not whole or not all(isinstance(count, int) for row in counts for count in row):
        return None
    return {"labels": [str(label) for label in labels], "counts": counts}


def _languages(value: Any) -> str:
    return " → ".join(map(str, value)) if isinstance(value, list) else _text(value)


def _data(value: Any) -> str:
    """Return such as "train.tsv · 3,102 training examples, 268 for validation"."""
    if not isinstance(value, dict) or "name" not in value:
        return _text(value)
    train, dev, lines = (value.get(name) for name in ("train_pairs", "dev_pairs", "lines"))
    counts = [
        f"{train:,} training examples"
        if isinstance(train, int)
        else f"{lines:,} lines"
        if isinstance(lines, int)
        else "",
        f"{dev:,} for validation" if isinstance(dev, int) else "",
    ]
    return " · ".join(part for part in (str(value["name"]), ", ".join(filter(None, counts))) if part)


def _parameters(value: Any) -> str:
    if not isinstance(value, int) or value < 100_000:
        return _text(value)
    return f"{value / 1e6:.1f} million" if value < 1e9 else f"{value / 1e9:.1f} billion"


def _minutes(value: Any) -> str:
    if not isinstance(value, int | float):
        return _text(value)
    return f"{value:.1f} minutes" if value < 120 else f"{value / 60:.1f} hours"


def _scores(value: Any) -> str:
    """Return such as "chrF++ 71.3 · BLEU 48.2, on 265 sentences"."""
    if not isinstance(value, dict):
        return _text(value)
    number = {name: each for name, each in value.items() if isinstance(each, int | float)}
    known = [f"{title} {number[name]:.{digits}f}{unit}" for name, title, digits, unit in SCORES if name in number]
    others = {name for name in number if name not in {score[0] for score in SCORES} and name not in COUNTED}
    if not known:
        return " · ".join(f"{name} {_text(number[name])}" for name in number if name in others)
    counted = [f", on {number[name]:,} {title}" for name, title in COUNTED.items() if name in number]
    return " · ".join(known) + "".join(counted[:1])


def _versions(value: Any) -> str:
    if not isinstance(value, dict):
        return _text(value)
    return ", ".join(f"{name} {value[name]}" for name in ("regard", "torch", "python") if name in value)


_LINES: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "languages": ("Languages", _languages),
    "data": ("Trained on", _data),
    "parameters": ("Parameters", _parameters),
    "minutes": ("Training time", _minutes),
    "seed": ("Seed", str),
    "scores": ("Scores", _scores),
    "versions": ("Made with", _versions),
}
"""entry of a card → its title, and how its value is written"""


def _text(value: Any) -> str:
    """Return any value as short text: hashes are cut, nested objects left out."""
    if isinstance(value, dict):
        return " · ".join(f"{name} {_text(each)}" for name, each in value.items() if not isinstance(each, dict))
    if isinstance(value, list | tuple):
        more = ", …" if len(value) > MAX_LISTED else ""
        return ", ".join(_text(each) for each in value[:MAX_LISTED]) + more
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b", r"\1…", str(value))
