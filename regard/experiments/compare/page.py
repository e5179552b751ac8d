"""A comparison as one self-contained HTML file: table, training curves, translations and attention side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard.config import folder as folders
from regard.experiments.compare.comparison import Comparison
from regard.experiments.compare.results import KindResult, RunResult
from regard.experiments.compare.samples import SampleSentence
from regard.look.page import document
from regard.look.page_data import of_traces

PACKAGES = {"look": "regard.look", "compare": "regard.experiments.compare"}
STYLES = ("look/page.css", "look/pictures.css", "compare/compare.css")


def comparison_page(comparison: Comparison, samples: Sequence[SampleSentence]) -> str:
    """Return the HTML page of a comparison."""
    content = of_traces([trace for sample in samples for trace in sample.traces])
    content["comparison"] = comparison_content(comparison, samples)
    return document(content, "Which attention is best?", STYLES, "compare/page.js", PACKAGES)


def comparison_content(comparison: Comparison, samples: Sequence[SampleSentence] = ()) -> dict[str, Any]:
    """Return what the scripts of a page show of a comparison, besides the traces of its samples."""
    return {
        "conclusions": comparison.conclusions,
        "facts": _facts(comparison),
        "kinds": [_kind(kind) for kind in comparison.kinds],
        "sentences": [
            {"source": sample.source, "references": list(sample.references), "scores": list(sample.scores)}
            for sample in samples
        ],
    }


def _facts(comparison: Comparison) -> list[list[str]]:
    """Return what the comparison was about, as names and values."""
    facts, data = comparison.facts, comparison.facts["data"]
    languages = f", {' → '.join(facts['languages'])}" if facts["languages"] else ""
    seeds = ", ".join(map(str, facts["seeds"]))
    limit = "no time limit" if facts["minutes"] is None else f"{facts['minutes']:g} minutes each"
    return [
        ["Data", f"{data['name']}{languages}: {data['train_pairs']:,} pairs for training"],
        ["Dev", f"{facts['dev']['sources']:,} sentences"],
        ["Runs", f"{limit}; seeds {seeds}"],
        ["Scores", comparison.best.best_run.signature],
        ["Command", facts["command"]],
    ]


def _kind(kind: KindResult) -> dict[str, Any]:
    names = ("chrf", "bleu", "exact", "aer", "minutes", "sentences_per_second", "parameters")
    spreads = {name: spread for name in names if (spread := kind.spread(name)) is not None}
    return {
        "name": kind.name,
        "settings": " ".join([kind.recipe, *(f"{key}={value}" for key, value in kind.settings.items())]),
        "p": kind.p_value,
        "significant": kind.is_significant,
        "failures": kind.failures,
        "values": {name: asdict(spread) for name, spread in spreads.items()},
        "shown": kind.best_run.seed if kind.trained else None,
        "curves": [{"seed": run.seed, "points": _curve(run)} for run in kind.trained],
    }


def _curve(run: RunResult) -> list[tuple[int, float, float]]:
    """Return (update, minutes, chrF++) of each validation of a run."""
    points = []
    for line in Path(run.folder / folders.LOG).read_text(encoding="utf-8").split("\n"):
        entry = json.loads(line) if line else {}
        if entry.get("kind") == "validation" and entry.get("chrf") is not None:
            points.append((entry["update"], round(entry["seconds"] / 60, 3), entry["chrf"]))
    return points
