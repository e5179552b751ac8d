"""One run of a comparison: train a model, then translate and score dev. The result is a file in the run's folder."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.alignment.aligner import align_by_attention
from regard.alignment.error_rate import error_rate
from regard.config import folder as folders
from regard.config.recipe_text import from_toml
from regard.experiments.compare import folder as layout
from regard.experiments.compare.gold import GoldSet, read_gold_set
from regard.metrics.translation import score
from regard.runtime.precision import Precision
from regard.runtime.started import STARTED
from regard.tasks.train import train
from regard.tasks.translation.predictor import Translator
from regard.training.progress import Screen

WARMUP_SOURCES = 8  # sources that are translated before the speed is measured


@dataclass(frozen=True)
class TrainingJob:
    """Everything that a run needs; all values can be written as JSON."""

    comparison: str  # the folder of the comparison
    run: str  # the folder of the run
    kind: str
    seed: int
    recipe: str  # as TOML
    data: list[str]
    dev: list[str] | None
    reverse: bool
    languages: list[str] | None
    sha256: str | None  # the digest of the training data that is expected; None: any
    minutes: float | None
    threads: int | None
    device: str | None
    precision: Precision
    gold: list[str] | None
    gold_digest: str | None
    command: list[str]  # the arguments of the command that compares

    @property
    def name(self) -> str:
        return f"{self.kind}, seed {self.seed}"

    @property
    def is_done(self) -> bool:
        """Whether there is a result, with the error rate on the same gold links if there are any."""
        result = layout.read_result(Path(self.run))
        return result is not None and result.get("gold_digest") == self.gold_digest

    def execute(self, screen: Screen) -> None:
        run_job(self, screen)


def run_job(job: TrainingJob, screen: Screen) -> None:
    """Train the model, or go on where its training stopped; score it on dev, and write the result."""
    run, languages = Path(job.run), None if job.languages is None else (job.languages[0], job.languages[1])
    model = run / layout.MODEL
    begun = (model / folders.CARD).is_file()
    if not begun:  # what is there comes from a run that was killed before it began to train
        shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True, exist_ok=True)
    translator = train(
        [Path(file) for file in job.data],
        model,
        dev=None if job.dev is None else [Path(file) for file in job.dev],
        reverse=job.reverse,
        recipe=from_toml(job.recipe),
        minutes=job.minutes,
        resume=begun,
        languages=languages,
        seed=job.seed,
        threads=job.threads,
        device=job.device,
        precision=job.precision,
        screen=screen,
        began=STARTED,
    )
    assert isinstance(translator, Translator)
    if job.sha256 not in (None, translator.card["data"]["sha256"]):
        shutil.rmtree(model)  # so that resuming trains it on the data of the others, when they are back
        raise ValueError("the training data changed since the comparison began")
    screen.status("scoring")
    gold = None if job.gold is None else read_gold_set(job.gold, job.reverse, languages)
    result = measure(translator, *layout.read_dev(Path(job.comparison)), gold)
    (run / layout.FAILED).unlink(missing_ok=True)
    layout.write_json(run / layout.RESULT, result)


def measure(
    translator: Translator, sources: Sequence[str], references: Sequence[Sequence[str]], gold: GoldSet | None
) -> dict[str, Any]:
    """Return the scores of a model on dev, its translations, its speed, and its alignment error rate."""
    translator.translate(list(sources[:WARMUP_SOURCES]))
    began = time.perf_counter()
    hypotheses = translator.translate(list(sources))
    seconds = time.perf_counter() - began
    rate = None if gold is None else error_rate(list(align_by_attention(gold.pairs, translator)), gold.links)
    return {
        "scores": score(hypotheses, references).as_dict(),
        "sentences_per_second": round(len(sources) / max(seconds, 1e-9), 2),
        "minutes": translator.card["minutes"],
        "ended": translator.card["ended"],
        "parameters": translator.card["parameters"],
        "aer": None if rate is None else rate.as_dict(),
        "gold_digest": None if gold is None else gold.digest,
        "hypotheses": hypotheses,
    }
