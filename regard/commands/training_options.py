"""The options that `regard train` and `regard tune` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from typer import Option

from regard.commands.options import DeviceOptions, Seed, SideOptions
from regard.commands.screen import Terminal
from regard.runtime.started import STARTED

Settings = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Set a value of the recipe, such as training.epochs=5. Can be repeated."),
]
Minutes = Annotated[float | None, Option(min=0.05, help="The time limit of the whole run.")]
Resume = Annotated[bool, Option("--resume", help="Continue the run in --out.")]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace the model in --out.")]
Deterministic = Annotated[
    bool,
    Option("--deterministic", help="On a GPU: make the result repeatable bit for bit, as it is on a CPU. Slower."),
]


@dataclass(frozen=True)
class TrainingOptions:
    """How a training goes, besides what is trained on which data."""

    set_: Settings = None
    minutes: Minutes = None
    resume: Resume = False
    overwrite: Overwrite = False
    seed: Seed = 1
    deterministic: Deterministic = False

    def arguments(self, sides: SideOptions, on: DeviceOptions, screen: Terminal) -> dict[str, Any]:
        """Return the arguments that `regard.train`, `regard.train_best` and `regard.tune` share."""
        return {
            "settings": settings(self.set_ or []),
            "minutes": self.minutes,
            "resume": self.resume,
            "overwrite": self.overwrite,
            "seed": self.seed,
            "reverse": sides.reverse,
            "languages": sides.languages,
            "threads": on.threads,
            "device": on.device,
            "precision": on.precision,
            "screen": screen,
            "began": STARTED,
        }


def settings(given: list[str]) -> dict[str, str]:
    """Return the settings of a recipe that `--set KEY=VALUE` gives, by key."""
    values = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key:
            raise ValueError(f"--set: expected KEY=VALUE, such as training.epochs=5, got {each!r}")
        values[key.strip()] = value.strip()
    return values
