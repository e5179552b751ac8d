"""The results of a comparison as text: a table, what it means in words, and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from regard.experiments.compare.results import KindResult, Spread
from regard.metrics.significance import SAMPLES, SIGNIFICANT

CSV_COLUMNS = (
    *("kind", "recipe", "settings", "runs", "failed", "chrf", "chrf_low", "chrf_high", "bleu", "exact", "p_value"),
    *("aer", "minutes", "sentences_per_second", "parameters", "failure"),
)


def terminal_table(kinds: Sequence[KindResult]) -> str:
    """Return the table of kinds, the best first, for a terminal."""
    with_aer = any(kind.spread("aer") is not None for kind in kinds)
    several = any(len(kind.runs) > 1 for kind in kinds)
    rows = [_header(with_aer, several), *(_row(kind, with_aer, several) for kind in kinds if kind.trained)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
    failed = [f"{kind.name.ljust(widths[0])}  failed: {kind.failures[0]}" for kind in kinds if not kind.trained]
    return "\n".join([*lines, *failed])


def _header(with_aer: bool, several: bool) -> list[str]:
    spread = ["seeds"] if several else []
    aer = ["AER"] if with_aer else []
    return ["kind", "chrF++", *spread, "p", "BLEU", "exact", *aer, "minutes", "sent/s", "parameters"]


def _row(kind: KindResult, with_aer: bool, several: bool) -> list[str]:
    chrf = _known(kind, "chrf")
    spread = [f"{chrf.low:.1f} … {chrf.high:.1f}"] if several else []
    aer = kind.spread("aer")
    return [
        kind.name,
        f"{chrf.mean:.1f}",
        *spread,
        "best" if kind.p_value is None else f"{kind.p_value:.3f}",
        f"{_known(kind, 'bleu').mean:.1f}",
        f"{_known(kind, 'exact').mean:.1f} %",
        *((["–"] if aer is None else [f"{aer.mean:.3f}"]) if with_aer else []),
        f"{_known(kind, 'minutes').mean:.1f}",
        f"{_known(kind, 'sentences_per_second').mean:.0f}",
        f"{_known(kind, 'parameters').mean:,.0f}",
    ]


def _known(kind: KindResult, name: str) -> Spread:
    spread = kind.spread(name)
    assert spread is not None
    return spread


def conclusions(kinds: Sequence[KindResult], dev_sources: int) -> list[str]:
    """Return in words which kind is best, which differences are significant, and what failed."""
    trained = [kind for kind in kinds if kind.trained]
    best, others = trained[0], trained[1:]
    seeds = len(best.runs)
    over = "1 seed" if seeds == 1 else f"{seeds} seeds"
    lines = [
        f"Best: {best.name}, chrF++ {_known(best, 'chrf').mean:.1f} on {dev_sources:,} dev sentences, over {over}."
    ]
    worse = [kind.name for kind in others if kind.is_significant]
    alike = [f"{kind.name} (p = {kind.p_value:.2f})" for kind in others if not kind.is_significant]
    if worse:
        lines.append(f"Significantly worse (p < {SIGNIFICANT}): {', '.join(worse)}.")
    if alike:
        lines.append(f"No significant difference to the best: {', '.join(alike)}.")
    if others:
        lines.append(f"p: paired bootstrap resampling of the dev sentences ({SAMPLES:,} samples) on chrF++.")
    constant = [kind.name for kind in trained if kind.is_constant]
    if constant:
        same = "every sentence gets the same translation"
        lines.append(f"Nothing learned yet, {same}: {', '.join(constant)}. More minutes may help.")
    for kind in trained:
        if kind.failures:
            count, runs = len(kind.failures), len(kind.runs)
            lines.append(f"{kind.name}: {count} of {runs} runs failed: {kind.failures[0]}")
    return lines


def csv_text(kinds: Sequence[KindResult]) -> str:
    """Return the results as CSV: one row per kind, empty where a kind has no value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for kind in kinds:
        writer.writerow(_csv_row(kind))
    return out.getvalue()


def _csv_row(kind: KindResult) -> Sequence[object]:
    chrf = kind.spread("chrf")
    means = {
        name: kind.spread(name) for name in ("bleu", "exact", "aer", "minutes", "sentences_per_second", "parameters")
    }
    values = {name: "" if spread is None else round(spread.mean, 4) for name, spread in means.items()}
    settings = " ".join(f"{key}={value}" for key, value in kind.settings.items())
    scores = ["", "", ""] if chrf is None else [round(value, 4) for value in (chrf.mean, chrf.low, chrf.high)]
    return [
        *(kind.name, kind.recipe, settings, len(kind.trained), len(kind.failures), *scores),
        *(values["bleu"], values["exact"], "" if kind.p_value is None else round(kind.p_value, 4)),
        *(values["aer"], values["minutes"], values["sentences_per_second"], values["parameters"]),
        kind.failures[0] if kind.failures else "",
    ]
