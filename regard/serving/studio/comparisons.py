"""Comparisons of `regard compare` that the page shows: their tables, and their models to compare on any sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.experiments.compare import folder as layout
from regard.experiments.compare.comparison import Comparison
from regard.experiments.compare.page import comparison_content
from regard.experiments.compare.samples import most_different
from regard.metrics.significance import BootstrapScores
from regard.serving.store import ModelStore


@dataclass(frozen=True)
class ServedComparison:
    """A comparison, and the names by which the server has the best model of each kind."""

    name: str
    comparison: Comparison
    models: dict[str, str]  # kind → model

    @classmethod
    def of(cls, comparison: Comparison, store: ModelStore) -> ServedComparison:
        """Return the comparison, after adding the best model of each of its kinds to the store."""
        models = {kind.name: store.add(kind.best_run.folder, kind.name).name for kind in comparison.trained}
        return cls(comparison.folder.resolve().name, comparison, models)

    def content(self) -> dict[str, Any]:
        """Return what the page shows: the tables, and the sentences of dev on which the kinds differ most."""
        return {
            "name": self.name,
            "models": self.models,
            "comparison": comparison_content(self.comparison),
            "differing": self._differing(),
        }

    def _differing(self) -> list[dict[str, Any]]:
        sources, references = layout.read_dev(self.comparison.folder)
        trained = self.comparison.trained
        rows = most_different(trained, sources, references)
        scoring = BootstrapScores([references[row] for row in rows], samples=0)
        texts = [[kind.best_run.hypotheses[row] for row in rows] for kind in trained]
        scores = np.round([scoring.by_sentence(each) for each in texts], 1).tolist()
        return [
            {
                "source": sources[row],
                "references": references[row],
                "translations": [each[place] for each in texts],
                "scores": [each[place] for each in scores],
            }
            for place, row in enumerate(rows)
        ]
