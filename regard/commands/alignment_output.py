"""What `regard align` prints: a line for each pair, and scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

if TYPE_CHECKING:
    from regard.alignment.links import Gold, Link, Links
    from regard.alignment.rows import Notify, Sides


class AlignedRow(NamedTuple):
    """The texts of a pair, its links, sorted, and their probabilities where there are any."""

    source: str
    target: str
    links: Sequence[Link]
    probabilities: Sequence[float] | None = None


def line_of(row: AlignedRow, tokenized: bool, as_json: bool) -> str:
    """Return the line that is printed of a pair."""
    if as_json:
        return json.dumps(_as_dict(row), ensure_ascii=False)
    links = " ".join(f"{source}-{target}" for source, target in row.links)
    return f"{row.source}\t{row.target}\t{links}" if tokenized else links


def _as_dict(row: AlignedRow) -> dict[str, object]:
    from regard.alignment.tokens import tokens

    texts = {"source": row.source, "target": row.target}
    words = {"source_tokens": tokens(row.source), "target_tokens": tokens(row.target)}
    links: dict[str, object] = {"links": row.links}
    if row.probabilities is not None:
        links["probabilities"] = [round(each, 4) for each in row.probabilities]
    return {**texts, **words, **links}


def read_gold_of(path: Path, rows: Sequence[Sides], notify: Notify) -> list[Gold]:
    """Return the gold links of each row; give a notice if they seem to be counted from 1."""
    from regard.alignment.links import read_gold, without_zero
    from regard.alignment.tokens import tokens

    gold = read_gold(path, [(len(tokens(source)), len(tokens(target))) for source, target in rows])
    if without_zero(gold):
        notify(f"{path}: no link has a 0; if it counts from 1, the scores are wrong: links are counted from 0")
    return gold


def print_scores(links: Sequence[Links], gold: Sequence[Gold], as_json: bool) -> None:
    """Print AER, precision and recall."""
    from regard.alignment.error_rate import error_rate

    rate = error_rate(links, gold)
    typer.echo(json.dumps(rate.as_dict(), indent=2) if as_json else str(rate))
