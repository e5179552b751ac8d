"""The folder of a comparison, as `regard compare` writes it, of models that are trained already."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import regard
from regard.config import folder as folders
from regard.experiments.compare import folder as layout
from regard.experiments.compare.comparison import Comparison
from regard.experiments.compare.folder import ComparisonPlan, described, run_folder
from regard.experiments.compare.job import measure
from regard.experiments.compare.kinds import ModelKind
from regard.experiments.compare.results import compared, read_run
from tests.training import toy

SEED = 1


def write_comparison(out: Path, models: Mapping[str, Path]) -> Path:
    """Write the comparison of the models of some folders, by the names of their kinds."""
    sources, references = [source for source, _ in toy.PAIRS[:6]], [[target] for _, target in toy.PAIRS[:6]]
    kinds = [ModelKind(name, folders.read_recipe(folder), {}) for name, folder in models.items()]
    data = {"name": "toy.tsv", "lines": len(toy.PAIRS), "sha256": "", "train_pairs": len(toy.PAIRS)}
    dev = {"sha256": "", "sources": len(sources)}
    plan = ComparisonPlan(data, dev, described(kinds), [SEED], 1.0, False, ["en", "mr"], "auto", "regard compare")
    layout.create(out, plan, {layout.DEV: layout.dev_text(sources, references)})
    for kind in kinds:
        run = run_folder(out, kind, SEED)
        shutil.copytree(models[kind.name], run / layout.MODEL)
        translator = regard.load(models[kind.name], "cpu")
        assert isinstance(translator, regard.Translator)
        layout.write_json(run / layout.RESULT, measure(translator, sources, references, None))
    runs = [(kind, [read_run(out, kind, SEED)]) for kind in kinds]
    facts = {name: value for name, value in plan.as_dict().items() if name not in ("format", "kinds")}
    comparison = Comparison(out, compared(runs, references), facts)
    layout.write_json(out / layout.JSON, comparison.as_dict())
    return out
