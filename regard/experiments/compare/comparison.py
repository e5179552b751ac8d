"""The result of `regard.compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.experiments.compare import folder as layout
from regard.experiments.compare.results import KindResult
from regard.experiments.compare.table import conclusions, terminal_table


@dataclass(frozen=True)
class Comparison:
    """All kinds of models that were compared, the best first, those that failed last."""

    folder: Path
    kinds: Sequence[KindResult]
    facts: Mapping[str, Any]  # data, dev, seeds, minutes: as in plan.json

    @property
    def trained(self) -> list[KindResult]:
        """the kinds with at least one run that did not fail"""
        return [kind for kind in self.kinds if kind.trained]

    @property
    def best(self) -> KindResult:
        """the kind with the highest mean chrF++"""
        return self.kinds[0]

    @property
    def page(self) -> Path:
        """the page with the table, training curves, translations and attention"""
        return self.folder / layout.PAGE

    @property
    def conclusions(self) -> list[str]:
        """which kind is best and which differences are significant, in words"""
        return conclusions(self.kinds, self.facts["dev"]["sources"])

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison for JSON."""
        facts = {"format": layout.FORMAT, **self.facts, "signature": self.best.best_run.signature}
        return facts | {"conclusions": self.conclusions, "kinds": [kind.as_dict() for kind in self.kinds]}

    def __str__(self) -> str:
        return "\n".join([terminal_table(self.kinds), "", *self.conclusions])
