"""The entry `run` of a card: the arguments of a training, so that it can be repeated."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.config.recipe import Recipe
from regard.config.recipe_text import from_tree, to_toml
from regard.tasks.spec import Given, TrainingData
from regard.training.loop import Machine
from regard.training.recorded_plan import RecordedPlan

DIGESTS = {
    "data": "sha256",
    "dev data": "dev_sha256",
    "extra data": "extra_sha256",
    "teachers": "teachers_sha256",
}
"""keys of the card's entry `data`"""


@dataclass(frozen=True)
class RunEntry:
    """What decides the numbers of a training, besides the card's own entries for task, languages, seed and precision.

    Paths are as the user gave them. The recipe is the one that training began with: every value that the data decide is
    chosen; beam size and length penalty, which are chosen at the end, are open unless they were set.
    """

    data: list[str] | None  # None: not from files
    dev: list[str] | None  # None: not given, or not from files
    extra: list[str] | None
    reverse: bool
    minutes: float | None  # the time limit
    threads: int
    device: str
    deterministic: bool
    recipe: dict[str, Any]
    teachers: list[str] | None = None

    @classmethod
    def of(
        cls, given: Given, recipe: Recipe, minutes: float | None, threads: int, machine: Machine, deterministic: bool
    ) -> RunEntry:
        return cls(
            data=paths(given.data),
            dev=paths(given.dev),
            extra=paths(given.extra),
            reverse=given.reverse,
            minutes=minutes,
            threads=threads,
            device=str(machine.device),
            deterministic=deterministic,
            recipe=tomllib.loads(to_toml(recipe)),
            teachers=paths(given.teachers),
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, card: Mapping[str, Any], name: str) -> RunEntry:
        """Return the entry of a card; raise a ValueError if it has none, or a damaged one. `name` is the card's."""
        entry = card.get("run")
        if entry is None:
            raise ValueError(f"{name}: it has no entry `run`, which says how the model was trained; train it anew")
        try:
            run = cls(**entry)
        except TypeError:
            raise ValueError(f"{name}: damaged: run: expected {', '.join(cls.__annotations__)}") from None
        lists = all(each is None or _are_paths(each) for each in (run.data, run.dev, run.extra, run.teachers))
        flags = all(isinstance(each, bool) for each in (run.reverse, run.deterministic))
        threads = isinstance(run.threads, int) and 1 <= run.threads <= 10_000
        minutes = run.minutes is None or isinstance(run.minutes, (int, float))
        if not (lists and flags and threads and minutes and isinstance(run.device, str)):
            raise ValueError(f"{name}: damaged: run: expected lists of files, true or false, and whole numbers")
        return run

    def read_recipe(self, name: str) -> Recipe:
        if not isinstance(self.recipe, dict):
            raise ValueError(f"{name}: damaged: run: expected a recipe")
        return from_tree(self.recipe, name)


@dataclass(frozen=True)
class Requirements:
    """What a repeated training requires: the data of the card, and its plan if that was made by the clock."""

    card: str  # its name, for messages
    digests: Mapping[str, str]
    plan: RecordedPlan | None = None

    def check(self, data: TrainingData[Any]) -> None:
        """Raise a ValueError unless the data are those of the card."""
        for kind, key in DIGESTS.items():
            digest, expected = data.digests[key], self.digests.get(key, "")
            if digest != expected:
                got = f"got {data.name}, {digest}" if digest else "got none"
                raise ValueError(f"{self.card}: trained on other {kind}: expected SHA-256 {expected or 'none'}, {got}")


def paths(given: Any) -> list[str] | None:
    """Return the paths of files that were given, as they were written; None if none or something else was given."""
    parts = [given] if isinstance(given, (str, Path)) else given
    return [str(each) for each in parts] if _are_paths(parts) else None


def _are_paths(parts: Any) -> bool:
    is_list = isinstance(parts, Sequence) and not isinstance(parts, str) and len(parts) > 0
    return is_list and all(isinstance(each, (str, Path)) for each in parts)
