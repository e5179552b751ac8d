"""A comparison that has ended, from its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.config.recipe_text import from_toml
from regard.experiments.compare import folder as layout
from regard.experiments.compare.comparison import Comparison
from regard.experiments.compare.kinds import ModelKind
from regard.experiments.compare.results import KindResult, read_run


def read_comparison(folder: Path) -> Comparison:
    """Return the comparison of a folder; raise a ValueError if it is damaged or has not ended.

    Means, significance and the order of the kinds are those of compare.json; the runs are read from their own files.
    """
    plan, results = layout.read_plan(folder), layout.read_results(folder)
    if results.get("format") != layout.FORMAT:
        raise ValueError(f"{folder / layout.JSON}: expected format {layout.FORMAT}, got {results.get('format')!r}")
    try:
        planned = {kind["name"]: kind for kind in plan["kinds"]}
        kinds = [
            _kind(folder, planned[kind["name"]], plan["seeds"], kind["recipe"], kind["p_value"])
            for kind in results["kinds"]
        ]
        facts = {name: plan[name] for name in plan if name not in ("format", "kinds")}
        comparison = Comparison(folder, kinds, facts)
        comparison.conclusions  # noqa: B018, raises an error if something is missing
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{folder}: damaged: expected the results of a comparison; {error!r}") from None
    return comparison


def _kind(folder: Path, planned: dict[str, Any], seeds: list[int], recipe: str, p_value: float | None) -> KindResult:
    kind = ModelKind(planned["name"], from_toml(planned["recipe"]), planned["settings"])
    runs = [read_run(folder, kind, seed) for seed in seeds]
    return KindResult(kind.name, recipe, kind.settings, runs, p_value)
