"""One of the models that teach the final one: an ordinary training in a folder of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from regard.config import folder as folders
from regard.config.recipe_text import from_toml
from regard.runtime.precision import Precision
from regard.tasks.train import train
from regard.training.progress import Screen


@dataclass(frozen=True)
class MemberJob:
    """Everything that the training of a member needs; all values can be written as JSON."""

    name: str
    run: str  # the folder of the model
    data: str
    dev: str
    recipe: str  # as TOML
    seed: int
    minutes: float | None
    threads: int | None
    device: str | None
    precision: Precision
    command: list[str]

    @property
    def is_done(self) -> bool:
        """Whether its training has ended and its scores are known."""
        return "scores" in self._card

    @property
    def _card(self) -> dict[str, object]:
        folder = Path(self.run)
        return folders.read_card(folder) if (folder / folders.CARD).is_file() else {}

    def execute(self, screen: Screen) -> None:
        """Train the model, or go on where its training stopped."""
        train(
            self.data,
            self.run,
            dev=self.dev,
            recipe=from_toml(self.recipe),
            minutes=self.minutes,
            resume=bool(self._card),
            seed=self.seed,
            threads=self.threads,
            device=self.device,
            precision=self.precision,
            screen=screen,
        )
