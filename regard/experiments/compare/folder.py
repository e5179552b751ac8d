"""The folder of a comparison: what it began with, its runs, and its results.

    plan.json                      data, kinds, seeds and minutes that it began with; resuming needs the same ones
    dev.jsonl                      the dev set on which every run is scored: source and references
    train.jsonl                    the training pairs, if they were given as texts; also given-dev.jsonl
    runs/KIND/seed-N/model/        the folder of a model, as `regard train` makes it
    runs/KIND/seed-N/result.json   its scores and translations; not there before the run has ended
    runs/KIND/seed-N/failed.json   why the run failed; not there otherwise
    compare.json .csv .html        the results

The folder is created whole, and files are replaced atomically: a comparison that is killed can be resumed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.config.folder import write
from regard.config.recipe_text import to_toml
from regard.experiments.compare.kinds import ModelKind
from regard.experiments.processes import ERRORS
from regard.runtime.files import check_new_folder, remove_folder, resolved
from regard.runtime.reading import check_links

FORMAT = 1
PLAN, DEV, RUNS, MODEL, RESULT, FAILED = "plan.json", "dev.jsonl", "runs", "model", "result.json", "failed.json"
JSON, CSV, PAGE = "compare.json", "compare.csv", "compare.html"
DIFFERENCES = {
    "data": "data",
    "dev": "dev data",
    "kinds": "kinds",
    "seeds": "seeds",
    "minutes": "minutes",
    "reverse": "direction",
    "languages": "languages",
    "precision": "precision",
}
"""parts of a plan that must be the same to resume → what a message calls them"""


@dataclass(frozen=True)
class ComparisonPlan:
    """What a comparison began with."""

    data: Mapping[str, Any]  # name, lines, sha256, train_pairs
    dev: Mapping[str, Any]  # sha256, sources
    kinds: Sequence[Mapping[str, Any]]  # name, recipe as TOML, settings
    seeds: Sequence[int]
    minutes: float | None
    reverse: bool
    languages: Sequence[str] | None
    precision: str
    command: str

    def as_dict(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}


def described(kinds: Sequence[ModelKind]) -> list[dict[str, Any]]:
    """Return kinds as a plan has them."""
    return [{"name": kind.name, "recipe": to_toml(kind.recipe), "settings": dict(kind.settings)} for kind in kinds]


def is_comparison(folder: Path) -> bool:
    """Return whether a path is the folder of a comparison."""
    return (folder / PLAN).is_file() and (folder / RUNS).is_dir()


def run_folder(folder: Path, kind: ModelKind, seed: int) -> Path:
    return folder / RUNS / kind.folder / f"seed-{seed}"


def check_folder(folder: Path, resume: bool, overwrite: bool) -> None:
    """Raise a ValueError unless a comparison may begin, begin anew or go on in `folder`."""
    if resume and overwrite:
        raise ValueError("resume and overwrite contradict each other: expected one of them")
    for path in () if resume else _temporary_paths(folder):
        if path.exists() and not (path / PLAN).is_file():
            raise ValueError(f"{path}: in the way: {folder.name} is made there first; expected nothing there")
    if not folder.exists():
        if resume:
            raise ValueError(f"{folder}: nothing to resume: there is no such folder; without --resume it begins")
        check_new_folder(folder)
        return
    if not folder.is_dir():
        raise ValueError(f"{folder}: expected a folder for the comparison, got a file")
    if not (folder / PLAN).is_file():
        raise ValueError(f"{folder}: expected the folder of a comparison, or nothing; it has no {PLAN}")
    if not (resume or overwrite):
        raise ValueError(f"{folder}: there already; expected --resume, to go on, or --overwrite, to begin anew")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{folder}: cannot be written: Permission denied")
    if resume:
        check_links(folder)  # a folder from a stranger must not lead a run to write elsewhere


def create(folder: Path, plan: ComparisonPlan, files: Mapping[str, str]) -> None:
    """Create the folder under a temporary name, and rename it when it is complete; an existing one is replaced."""
    new, old = _temporary_paths(folder)
    for path in (new, old):
        remove_folder(path, PLAN)
    try:
        new.mkdir(parents=True)
        write_json(new / PLAN, plan.as_dict())  # first: it marks the folder as one that may be deleted
        for name, text in files.items():
            write(new / name, text)
        if folder.exists():
            resolved(folder).rename(old)
        new.rename(resolved(folder))
    finally:
        if old.exists() and not folder.exists():
            old.rename(resolved(folder))
        for path in (new, old):
            remove_folder(path, PLAN)


def remove_error_files(folder: Path) -> None:
    """Remove what the processes of a killed comparison wrote on standard error."""
    for file in folder.glob(f"{RUNS}/*/*-{ERRORS}"):
        file.unlink(missing_ok=True)


def check_same(folder: Path, plan: ComparisonPlan) -> None:
    """Raise a ValueError unless the comparison in `folder` began with the same plan."""
    begun = read_plan(folder)
    if begun.get("format") != FORMAT:
        raise ValueError(f"{folder / PLAN}: expected format {FORMAT}, got {begun.get('format')!r}")
    now = json.loads(json.dumps(plan.as_dict()))
    for key, name in DIFFERENCES.items():
        if _identity(key, begun.get(key)) != _identity(key, now[key]):
            raise ValueError(f"{folder}: begun with other {name}; resume with what it began with, or use --overwrite")


def _identity(key: str, value: Any) -> Any:
    """Return what must be the same of a part of a plan: of data the content, not the name of the file."""
    return value.get("sha256") if key == "data" and isinstance(value, dict) else value


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    write(path, text.encode(errors="backslashreplace"))  # file names need not be valid UTF-8


def read_results(folder: Path) -> dict[str, Any]:
    """Return compare.json; raise a ValueError if the comparison has not ended."""
    if not (folder / JSON).is_file():
        raise ValueError(f"{folder}: expected a comparison that has ended; it has no {JSON}")
    return _read_json(folder / JSON)


def read_plan(folder: Path) -> dict[str, Any]:
    """Return plan.json."""
    return _read_json(folder / PLAN)


def read_result(run: Path) -> dict[str, Any] | None:
    """Return the result of a run, or None if it has none yet."""
    return _read_json(run / RESULT) if (run / RESULT).is_file() else None


def read_failure(run: Path) -> str | None:
    """Return why a run failed, or None if it did not."""
    if not (run / FAILED).is_file() or (run / RESULT).is_file():
        return None
    return str(_read_json(run / FAILED).get("reason", ""))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path.parent}: expected the folder of a comparison; it has no {path.name}") from None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: damaged: expected a JSON object")
    return content


def _temporary_paths(folder: Path) -> tuple[Path, Path]:
    """Return where the folder is created, and where the one that it replaces is moved to."""
    path = resolved(folder)
    return path.with_name(path.name + ".new"), path.with_name(path.name + ".old")


# The dev set


def dev_text(sources: Sequence[str], references: Sequence[Sequence[str]]) -> str:
    """Return the content of dev.jsonl."""
    lines = ({"source": source, "references": known} for source, known in zip(sources, references, strict=True))
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def read_dev(folder: Path) -> tuple[list[str], list[list[str]]]:
    """Return the sources and references of dev.jsonl."""
    try:
        lines = [json.loads(line) for line in (folder / DEV).read_text(encoding="utf-8").split("\n") if line]
        return [str(line["source"]) for line in lines], [list(map(str, line["references"])) for line in lines]
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{folder / DEV}: damaged: expected sources and references") from None


def write_failure(run: Path, reason: str) -> None:
    """Note in the folder of a run why it failed."""
    run.mkdir(parents=True, exist_ok=True)
    write_json(run / FAILED, {"reason": reason})
