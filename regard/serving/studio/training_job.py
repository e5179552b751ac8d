"""A training that the studio starts, in a process of its own (experiments/processes.py)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from regard.config import folder as folders
from regard.runtime.precision import Precision
from regard.runtime.started import STARTED
from regard.tasks.train import train
from regard.training.progress import Screen

DATA, JOB = ".data", "job.json"  # what the name of the folder of a training's data ends with, and the file of its job


@dataclass(frozen=True)
class StudioTraining:
    """Everything that a training needs; all values can be written as JSON."""

    run: str  # the folder of the model
    data: list[str]
    dev: list[str] | None
    task: str
    recipe: str | None
    settings: dict[str, str]
    minutes: float | None
    languages: list[str] | None
    reverse: bool
    seed: int
    threads: int | None
    device: str | None
    precision: Precision

    @property
    def name(self) -> str:
        return Path(self.run).name

    @property
    def command(self) -> list[str]:
        """the arguments of the command that trains the same model"""
        dev = [word for file in self.dev or () for word in ("--dev", file)]
        settings = [word for key, value in self.settings.items() for word in ("--set", f"{key}={value}")]
        languages = ["--from", self.languages[0], "--to", self.languages[1]] if self.languages else []
        options = {
            "--task": None if self.task == "translate" else self.task,
            "--recipe": self.recipe,
            "--minutes": None if self.minutes is None else f"{self.minutes:g}",
            "--seed": None if self.seed == 1 else str(self.seed),
            "--device": self.device,
        }
        given = [word for name, value in options.items() if value is not None for word in (name, value)]
        reverse = ["--reverse"] if self.reverse else []
        return ["train", *self.data, "--out", self.run, *dev, *given, *languages, *reverse, *settings]

    @property
    def is_done(self) -> bool:
        """Whether its training has ended and its scores are known."""
        return "scores" in self._card

    @property
    def has_begun(self) -> bool:
        """Whether there is something to resume."""
        return bool(self._card)

    @property
    def _card(self) -> dict[str, Any]:
        folder = Path(self.run)
        return folders.read_card(folder) if (folder / folders.CARD).is_file() else {}

    def execute(self, screen: Screen) -> None:
        """Train the model, or go on where its training stopped."""
        train(
            [Path(file) for file in self.data],
            self.run,
            task=self.task,
            dev=None if self.dev is None else [Path(file) for file in self.dev],
            reverse=self.reverse,
            recipe=self.recipe,
            settings=self.settings,
            minutes=self.minutes,
            resume=self.has_begun,
            languages=None if self.languages is None else (self.languages[0], self.languages[1]),
            seed=self.seed,
            threads=self.threads,
            device=self.device,
            precision=self.precision,
            screen=screen,
            began=STARTED,
        )

    def write(self) -> None:
        """Write the job beside its data, so that it can be resumed by another server."""
        folders.write(data_folder(Path(self.run)) / JOB, json.dumps(asdict(self), ensure_ascii=False, indent=2) + "\n")

    @classmethod
    def read(cls, folder: Path) -> StudioTraining:
        """Return the job of a model's folder; raise a ValueError if there is none."""
        path = data_folder(folder) / JOB
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
            return cls(**{each.name: given[each.name] for each in fields(cls)})
        except (OSError, ValueError, KeyError, TypeError):
            raise ValueError(f"{path}: expected the options of a training of the studio") from None


def data_folder(folder: Path) -> Path:
    """Return the folder of the data that the model of a folder is trained on."""
    return folder.with_name(folder.name + DATA)
