"""The folder in which `train --best` works: the models that only serve the final one, and what they translated.

    NAME.parts/plan.json       what the run began with; resuming needs the same
    NAME.parts/train.jsonl     the pairs, as split into training and dev
    NAME.parts/dev.jsonl
    NAME.parts/MEMBER/         the folder of a model, as `regard train` makes it
    NAME.parts/teachers.json   the members that teach the student
    NAME.parts/synthetic/      their translations
    NAME.parts/student/        the final model, until it is complete and takes its place

It stands next to the folder of the model, and is deleted in the end.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config import folder as folders
from regard.runtime.files import remove_folder
from regard.text.pairs import Pair
from regard.training.progress import Screen

PLAN, SPENT, TEACHERS, SYNTHETIC, STUDENT = "plan.json", "spent.json", "teachers.json", "synthetic", "student"
MEMBER = "member"  # names of the models that teach the student begin with this
TRAIN, DEV = FILES = ("train.jsonl", "dev.jsonl")


@dataclass(frozen=True)
class WorkFolder:
    path: Path

    @classmethod
    def beside(cls, out: Path) -> WorkFolder:
        """Return the work folder of a model's folder."""
        return cls(out.with_name(out.name + ".parts"))

    @property
    def begun(self) -> bool:
        return (self.path / PLAN).is_file()

    @property
    def is_foreign(self) -> bool:
        """Whether something else stands there: more than what `begin` writes before the plan."""
        if self.begun or not self.path.exists():
            return False
        return not self.path.is_dir() or any(not each.name.startswith(tuple(FILES)) for each in self.path.iterdir())

    def begin(self, plan: Mapping[str, Any], train: Sequence[Pair], dev: Sequence[Pair]) -> None:
        """Create the folder anew, with the plan as the last file: a folder without it has not begun."""
        self.delete()
        self.path.mkdir(parents=True)
        for name, pairs in zip(FILES, (train, dev), strict=True):
            rows = (json.dumps({"source": pair.source, "target": pair.target}, ensure_ascii=False) for pair in pairs)
            folders.write(self.path / name, "".join(row + "\n" for row in rows))
        folders.write(self.path / PLAN, json.dumps(dict(plan), ensure_ascii=False, indent=2))

    def check_same(self, plan: Mapping[str, Any], out: Path) -> None:
        """Raise a ValueError unless the run began with the same data, recipe and seed."""
        try:
            begun = json.loads((self.path / PLAN).read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            begun = None
        if not isinstance(begun, dict):
            raise ValueError(f"{self.path / PLAN}: damaged: expected JSON; --overwrite begins anew")
        for name, value in plan.items():
            if begun.get(name) != value:
                raise ValueError(f"{out}: begun with other {name}; resume with what it began with, or use --overwrite")

    def check_data(self, digest: str, dev_digest: str) -> None:
        """Raise a ValueError unless these are the digests of the data that the run began with."""
        begun = json.loads((self.path / PLAN).read_text(encoding="utf-8"))
        if (begun["data"], begun["dev data"]) != (digest, dev_digest):
            raise ValueError(f"{self.path}: the data changed since the run began; go on with --resume when it is back")

    @property
    def student(self) -> Path:
        return self.path / STUDENT

    @property
    def run_digest(self) -> str:
        """the SHA-256 of the plan, by which the card of the final model names its run"""
        return hashlib.sha256((self.path / PLAN).read_bytes()).hexdigest()

    def has_produced(self, out: Path) -> bool:
        """Return whether the model of a folder is the result of this run."""
        if not (self.begun and (out / folders.CARD).is_file()):
            return False
        return bool(folders.read_card(out).get("best", {}).get("run") == self.run_digest)

    def texts(self, name: str) -> list[tuple[str, str]]:
        """Return the (source, target) texts of a file of pairs: TRAIN or DEV."""
        rows = map(json.loads, filter(None, (self.path / name).read_text(encoding="utf-8").split("\n")))
        return [(row["source"], row["target"]) for row in rows]

    def teachers(self, members: Sequence[str], choose: Callable[[], list[str]]) -> list[str]:
        """Return the members that the run chose as teachers; the first time, choose them and write them to a file."""
        path = self.path / TEACHERS
        if not path.is_file():
            folders.write(path, json.dumps(choose()))
        try:
            chosen = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            chosen = None
        if not isinstance(chosen, list) or not chosen or any(name not in members for name in chosen):
            raise ValueError(f"{path}: damaged: expected a list of members; --overwrite begins anew")
        return chosen

    def keep_members(self, out: Path, screen: Screen) -> None:
        """Move the members into the final model's folder, those that are not there yet."""
        ensemble = out / "ensemble"
        ensemble.mkdir(exist_ok=True)
        for member in sorted(self.path.glob(f"{MEMBER}-*")):
            member.rename(ensemble / member.name)
        screen.say(f"the models that taught it: {', '.join(map(str, sorted(ensemble.iterdir())))}")

    # The clock

    @property
    def spent(self) -> float:
        """seconds that earlier processes of this run took"""
        path = self.path / SPENT
        return float(json.loads(path.read_text())["seconds"]) if path.is_file() else 0.0

    def add_spent(self, seconds: float) -> None:
        folders.write(self.path / SPENT, json.dumps({"seconds": seconds}))

    def delete(self) -> None:
        """Delete the folder, the plan last: until then, it is known what it is."""
        remove_folder(self.path, PLAN)
