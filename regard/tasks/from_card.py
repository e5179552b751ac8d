"""`regard.train_from_card`, which is `regard train --from-card`: repeat a training, bit for bit on the same machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.config import folder as folders
from regard.runtime import launch
from regard.runtime.determinism import fix_cublas_workspace
from regard.runtime.precision import read_device
from regard.tasks.registry import TASKS, AnyPredictor
from regard.tasks.run import RunOptions, hardware, versions
from regard.tasks.run_entry import DIGESTS, Requirements, RunEntry
from regard.tasks.spec import Given, Texts
from regard.tasks.train import train_with
from regard.training.progress import Screen, Silent
from regard.training.recorded_plan import RecordedPlan


def train_from_card(
    card: str | Path,
    out: str | Path,
    data: Any = None,
    *,
    dev: Any = None,
    extra: Texts | None = None,
    teachers: Sequence[str | Path] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    screen: Screen | None = None,
    began: float | None = None,
) -> AnyPredictor:
    """Train the model of a card again, and keep it in the folder `out`.

    card          a model's folder, or its card.json; all arguments of the training are taken from it
    data, dev, extra, teachers    the same ones, where they are not in the files that the card names; others are refused

    The screen is told which versions and hardware differ from the card's, and in the end whether the weights are equal.
    A run by the clock is repeated by its recorded plan, in whatever time that takes.
    """
    screen = screen if screen is not None and launch.rank() == 0 else Silent()
    path = Path(card)
    folder = path.parent if path.name == folders.CARD and not path.is_dir() else path
    facts, name = folders.read_card(folder), str(folder / folders.CARD)
    run = RunEntry.read(facts, name)
    _check(facts, run, name)
    given = [_given(facts, name, kind, files, own) for kind, files, own in _parts(run, data, dev, extra, teachers)]
    for line in differences(facts, run):
        screen.say(line)
    options = RunOptions(
        minutes=run.minutes,
        resume=resume,
        overwrite=overwrite,
        seed=facts["seed"],
        threads=run.threads,
        device=run.device,
        precision=facts["precision"],
        deterministic=run.deterministic,
        screen=screen,
        began=began,
        required=Requirements(name, facts["data"], _plan(facts, run, name)),
    )
    languages = tuple(facts["languages"]) if facts.get("languages") else None
    same = Given(given[0], given[1], run.reverse, languages, given[2], teachers=given[3] or ())
    model = train_with(options, facts["task"], same, out, run.read_recipe(name))
    screen.say(_verdict(facts, model.card))
    return model


def differences(card: dict[str, Any], run: RunEntry) -> list[str]:
    """Return what differs here from the versions and the hardware of a card, at most a line for each."""
    lines, now = [], versions()
    changed = [
        f"{name} {now.get(name)} (card: {old})" for name, old in card["versions"].items() if now.get(name) != old
    ]
    if changed:
        lines.append(f"other versions, which may change the result: {', '.join(changed)}")
    device = read_device(run.device)
    if device.type == "cuda" and run.deterministic:
        fix_cublas_workspace()  # before the GPU is asked for its name, which starts CUDA
    processes, now_processes = card.get("processes", 1), launch.processes()
    if processes != now_processes:
        lines.append(f"other processes, which change the result: {now_processes} (card: {processes})")
    here = hardware(device, run.threads)
    if card["hardware"] != here:
        lines.append(f"other hardware, which may change the result: {here} (card: {card['hardware']})")
    if device.type == "cuda" and not run.deterministic:
        lines.append("trained on a GPU without --deterministic: the repetition will differ in the last bits")
    return lines


def _parts(run: RunEntry, *given: Any) -> list[tuple[str, list[str] | None, Any]]:
    """Return (kind of data, the files that the card names, what was given instead) for each kind."""
    return list(zip(DIGESTS, (run.data, run.dev, run.extra, run.teachers), given, strict=True))


def _given(card: dict[str, Any], name: str, kind: str, files: list[str] | None, given: Any) -> Any:
    """Return the data that were given, else the files of the card, else None where the training had none either."""
    if given is not None or not card["data"].get(DIGESTS[kind]):
        return given
    if files is None:
        raise ValueError(f"{name}: trained on {kind} that were not files; expected them as an argument")
    missing = [file for file in files if not Path(file).exists()]
    if missing:
        option = {"data": "PAIRS", "dev data": "--dev", "teachers": "--teacher"}.get(kind, "extra")
        raise ValueError(f"{missing[0]}: there is no such file now; expected the same {kind} as {option}")
    return files


def _check(card: dict[str, Any], run: RunEntry, name: str) -> None:
    """Raise a ValueError for a card that cannot be repeated, or that is damaged."""
    if "best" in card:
        command = card.get("command", "")
        raise ValueError(f"{name}: made by --best, from models that are gone; expected its command again: {command}")
    if "tuned_from" in card:
        command = card.get("command", "")
        raise ValueError(f"{name}: made by `regard tune` from another model; expected its command again: {command}")
    if run.minutes is not None and "ended" not in card:
        raise ValueError(f"{name}: planned by the clock, and not ended: there is no plan yet to repeat")
    kinds = {"seed": int, "precision": str, "data": dict, "versions": dict, "hardware": str}
    damaged = [key for key, kind in kinds.items() if not isinstance(card.get(key), kind)]
    languages = card.get("languages")
    if damaged or card["task"] not in TASKS or not (languages is None or len(languages) == 2):
        raise ValueError(f"{name}: damaged: {damaged[0] if damaged else 'languages or task'}")


def _plan(card: dict[str, Any], run: RunEntry, name: str) -> RecordedPlan | None:
    """Return the recorded plan of a run by the clock."""
    if run.minutes is None and "plan" not in card:
        return None
    try:
        return RecordedPlan.from_dict(card["plan"])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValueError(f"{name}: damaged: expected the `plan` of a run by the clock") from None


def _verdict(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Say whether the weights are those of the card."""
    if "weights_sha256" not in before:
        return "the card does not say which weights to expect: its training had not ended"
    if before["weights_sha256"] == now["weights_sha256"]:
        return "the weights are those of the card, bit for bit"
    return "the weights differ from those of the card"
