"""The results of a comparison: the scores of each kind over its seeds, and which differences are significant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regard.experiments.compare import folder as layout
from regard.experiments.compare.kinds import ModelKind
from regard.metrics.significance import SIGNIFICANT, BootstrapScores, Floats, p_value


@dataclass(frozen=True)
class RunResult:
    """One run: a model with its scores on dev, or the reason why there is none."""

    seed: int
    folder: Path  # of the model
    chrf: float = 0.0
    bleu: float = 0.0
    exact: float = 0.0
    minutes: float = 0.0
    sentences_per_second: float = 0.0
    parameters: int = 0
    aer: float | None = None
    ended: str = ""  # why training ended
    signature: str = ""  # sacrebleu's, of chrF++
    failure: str | None = None
    hypotheses: Sequence[str] = field(default=(), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the run for JSON, without its translations."""
        return {name: value for name, value in asdict(self).items() if name != "hypotheses"} | {
            "folder": str(self.folder)
        }


@dataclass(frozen=True)
class Spread:
    """A value of several runs: the mean, and the smallest and largest."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(round(sum(values) / len(values), 4), min(values), max(values))


@dataclass(frozen=True)
class KindResult:
    """A kind of model: its runs, and their scores together. A kind whose runs all failed has no scores."""

    name: str
    recipe: str  # the name of the recipe
    settings: Mapping[str, str]
    runs: Sequence[RunResult]
    p_value: float | None = None  # of the difference in chrF++ to the best kind; None for the best kind itself

    @property
    def trained(self) -> list[RunResult]:
        """the runs that did not fail"""
        return [run for run in self.runs if run.failure is None]

    @property
    def failures(self) -> list[str]:
        return [run.failure for run in self.runs if run.failure is not None]

    @property
    def best_run(self) -> RunResult:
        """the run with the highest chrF++"""
        return max(self.trained, key=lambda run: run.chrf)

    @property
    def is_significant(self) -> bool:
        """Whether the kind is significantly worse than the best one."""
        return self.p_value is not None and self.p_value < SIGNIFICANT

    @property
    def is_constant(self) -> bool:
        """Whether every run gives all sentences the same translation: nothing is learned yet."""
        return all(len(run.hypotheses) > 1 == len(set(run.hypotheses)) for run in self.trained)

    def spread(self, name: str) -> Spread | None:
        """Return a value of the trained runs, such as "chrf"; None if none has it."""
        values = [value for run in self.trained if (value := getattr(run, name)) is not None]
        return Spread.of(values) if values else None

    def as_dict(self) -> dict[str, Any]:
        """Return the kind for JSON."""
        names = ("chrf", "bleu", "exact", "aer", "minutes", "sentences_per_second", "parameters")
        spreads = {name: self.spread(name) for name in names}
        return {
            "name": self.name,
            "recipe": self.recipe,
            "settings": dict(self.settings),
            **{name: None if value is None else asdict(value) for name, value in spreads.items()},
            "p_value": self.p_value,
            "failures": self.failures,
            "runs": [run.as_dict() for run in self.runs],
        }


def read_run(folder: Path, kind: ModelKind, seed: int) -> RunResult:
    """Return the result of a run that has ended."""
    run = layout.run_folder(folder, kind, seed)
    result = layout.read_result(run)
    if result is None:
        return RunResult(seed, run / layout.MODEL, failure=layout.read_failure(run) or "it has not ended")
    scores, rate = result["scores"], result["aer"]
    return RunResult(
        seed,
        run / layout.MODEL,
        **{name: scores[name] for name in ("chrf", "bleu", "exact")},
        **{name: result[name] for name in ("minutes", "sentences_per_second", "parameters", "ended", "hypotheses")},
        aer=None if rate is None else rate["aer"],
        signature=scores["signatures"]["chrf"],
    )


def compared(
    kinds: Sequence[tuple[ModelKind, Sequence[RunResult]]], references: Sequence[Sequence[str]]
) -> list[KindResult]:
    """Return the kinds, the best first, with the significance of their differences to the best one.

    Sentences are resampled for all runs together; the scores of a kind are the means over its runs.
    """
    results = [KindResult(kind.name, kind.recipe.name, kind.settings, runs) for kind, runs in kinds]
    ordered = sorted(results, key=lambda kind: -mean_chrf(kind))
    if not ordered or not ordered[0].trained:
        return ordered
    bootstrap = BootstrapScores(references)
    resampled: list[list[Floats]] = [[bootstrap.resampled(run.hypotheses) for run in kind.trained] for kind in ordered]
    values = [p_value(scores, resampled[0]) if scores else None for scores in resampled]
    values[0] = None
    return [
        KindResult(kind.name, kind.recipe, kind.settings, kind.runs, value)
        for kind, value in zip(ordered, values, strict=True)
    ]


def mean_chrf(kind: KindResult) -> float:
    """Return the mean chrF++ of a kind, or −1 if it has none."""
    spread = kind.spread("chrf")
    return -1.0 if spread is None else spread.mean
