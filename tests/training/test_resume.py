"""A run that was broken off goes on as if it had not been."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.tasks.train import train
from regard.tasks.translation import task as translating
from regard.tasks.translation.predictor import Translator
from regard.training import loop as loops
from regard.training import progress as reports
from tests.training import toy

ROOT = Path(__file__).parents[2]
DRAWS: dict[str, Any] = {
    "training.epochs": 4,
    "training.average": 0.9,
    "training.scheduled_sampling": 0.3,
    "training.canonical_segmentation": 0.4,
}
"""16 updates, validated after 4, 8, 12 and 16; dropout and sampling draw random numbers, the average is taken at 8, and
text has its canonical segmentation from update 10 on, in the middle of an epoch"""


@pytest.fixture(autouse=True, scope="module")
def every_update_is_told() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reports, "LOG_INTERVAL", 1)
        yield


def run(out: Path, pairs: Any = toy.PAIRS, settings: dict[str, Any] | None = None, **options: Any) -> Translator:
    return train(pairs, out, settings=toy.TINY | DRAWS | (settings or {}), device="cpu", **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never broken off."""
    out = tmp_path_factory.mktemp("resume") / "whole"
    run(out)
    return out


def same(ours: Path, theirs: Path) -> None:
    """Weights, averages, moments and random numbers, bit for bit; and the scores."""
    assert toy.differing(toy.weights(ours), toy.weights(theirs)) == []
    assert toy.differing(toy.last(ours), toy.last(theirs)) == []
    cards = [regard.load(folder).card for folder in (ours, theirs)]
    assert cards[0]["scores"] == cards[1]["scores"] and cards[0]["ended"] == cards[1]["ended"]


def report(folder: Path) -> list[tuple[Any, ...]]:
    """What the log says about updates and validations, times left out."""
    return [
        (entry["kind"], entry["update"], entry.get("chrf"), entry.get("best"))
        for entry in toy.log(folder)
        if entry["kind"] in ("update", "validation", "end")
    ]


@pytest.mark.parametrize("update", [1, 4, 7, 10, 11, 16])
def test_an_interruption_changes_nothing(update: int, whole: Path, tmp_path: Path) -> None:
    screen = toy.Watcher(interrupt_at=update)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "m", screen=screen)
    assert "interrupted: what was learned so far is kept; go on with --resume" in screen.text
    toy.interrupted(tmp_path / "m", validated=update > 4)
    torch.manual_seed(77)
    run(tmp_path / "m", resume=True)
    same(tmp_path / "m", whole)
    assert report(tmp_path / "m") == report(whole)


@pytest.mark.parametrize("update", [4, 16])
def test_an_interrupted_validation_is_made_up_for(
    update: int, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = translating.validate, [0]

    def interrupted(*given: Any) -> Any:
        calls[0] += 4
        result = real(*given)
        if calls[0] == update:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(translating, "validate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "m")
    toy.interrupted(tmp_path / "m", validated=update > 4)
    run(tmp_path / "m", resume=True)
    same(tmp_path / "m", whole)
    assert report(tmp_path / "m") == report(whole)


@pytest.mark.parametrize("text", ["plan:", "update 16:", "done after", "dev  BLEU"])
def test_an_interruption_between_updates_changes_nothing(text: str, whole: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "m", screen=toy.Watcher(interrupt_on=text))
    run(tmp_path / "m", resume=True)
    same(tmp_path / "m", whole)


def test_many_interruptions_change_nothing(whole: Path, tmp_path: Path) -> None:
    begun, broken = False, 0
    while broken < 30:
        try:
            run(tmp_path / "m", resume=begun, screen=toy.Watcher(interrupt_at=3))
            break
        except KeyboardInterrupt:
            begun, broken = True, broken + 1
    assert 4 <= broken <= 8, "each start gets on"
    same(tmp_path / "m", whole)


INTERRUPTED = """
import signal, sys, time
from pathlib import Path
import torch
from tests.training import test_resume
signal.signal(signal.SIGINT, signal.default_int_handler)
torch.set_num_threads(1)
test_resume.reports.LOG_INTERVAL = 1
print("ready", flush=True)
test_resume.run(Path(sys.argv[1]))
time.sleep(60)  # should the run be over before the signal comes
"""


def test_a_signal_at_any_moment_changes_nothing(whole: Path, tmp_path: Path) -> None:
    """As Ctrl-C sends it: it may come in the middle of an update, and it ends the process.

    In a process that goes on, the interrupt may have come between two lines of a context manager of torch, and then
    autocast, for example, is never left.
    """
    drawn = random.Random(5)
    for number in range(4):
        out = tmp_path / str(number)
        command = [sys.executable, "-c", INTERRUPTED, str(out)]
        begun = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
        assert begun.stdout is not None and begun.stdout.readline() == b"ready\n"
        if number:  # in training, otherwise before it
            while not updates(out):
                time.sleep(0.002)
                assert begun.poll() is None
        time.sleep(drawn.uniform(0.0, 0.3))
        message = interrupted(begun)
        assert begun.returncode and b"KeyboardInterrupt" in message
        assert out.exists() or not number
        run(out, resume=out.exists())
        same(out, whole)
        assert report(out) == report(whole)


def interrupted(begun: subprocess.Popen[bytes]) -> bytes:
    """Interrupt a process until it ends, and return what it wrote on standard error. Python ignores an interrupt that
    comes in a finalizer (`__del__`)."""
    for _ in range(4):
        begun.send_signal(signal.SIGINT)
        try:
            return begun.communicate(timeout=20)[1]
        except subprocess.TimeoutExpired:
            pass
    raise AssertionError("the process does not end")


def updates(folder: Path) -> int:
    """The number of updates in the log, whose last line may be half written."""
    file = folder / "log.jsonl"
    return file.read_bytes().count(b'"kind": "update"') if file.exists() else 0


def test_reinforce_goes_on_with_its_baseline(tmp_path: Path) -> None:
    settings = {"model.normalizer": "hard", "model.estimator": "reinforce"}
    run(tmp_path / "whole", settings=settings)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "m", settings=settings, screen=toy.Watcher(interrupt_at=13))
    run(tmp_path / "m", settings=settings, resume=True)
    same(tmp_path / "m", tmp_path / "whole")


def test_a_run_by_the_clock_goes_on_within_its_plan(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "m", minutes=0.1, screen=toy.Watcher(interrupt_at=9))
    plans = [entry for entry in toy.log(tmp_path / "m") if entry["kind"] == "plan"]
    run(tmp_path / "m", minutes=0.1, resume=True)
    now = [entry for entry in toy.log(tmp_path / "m") if entry["kind"] == "plan"]
    assert now[: len(plans)] == plans and [plan["settled"] for plan in now].count(True) <= 1
    assert toy.end(tmp_path / "m")["update"] <= now[-1]["updates"]


def test_a_finished_run_says_so_and_is_left_as_it_is(whole: Path) -> None:
    before = {file: file.read_bytes() for file in sorted(whole.rglob("*")) if file.is_file()}
    screen = toy.Watcher()
    result = run(whole, resume=True, screen=screen)
    assert isinstance(result, Translator) and result.card["ended"] == "done"
    assert "training has ended (done after 16 updates): nothing to resume" in screen.text
    assert before == {file: file.read_bytes() for file in sorted(whole.rglob("*")) if file.is_file()}


def test_resuming_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="m: nothing to resume: there is no such folder") as error:
        run(tmp_path / "m", tmp_path / "nowhere.tsv", resume=True)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"pairs": toy.PAIRS[:-1]}, "data"),
        ({"pairs": toy.PAIRS[::-1]}, "data"),
        ({"reverse": True}, "data"),
        ({"seed": 2}, "seed"),
        ({"dev": toy.PAIRS[:9]}, "dev"),
    ],
)
def test_resuming_with_something_else_is_refused(other: dict[str, Any], named: str, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "m", screen=toy.Watcher(interrupt_at=3))
    before = toy.last(tmp_path / "m")
    with pytest.raises(ValueError, match=named) as error:
        run(tmp_path / "m", resume=True, **other)
    assert "\n" not in str(error.value)
    assert toy.differing(toy.last(tmp_path / "m"), before) == []


def test_other_settings_are_not_dropped_in_silence(tmp_path: Path) -> None:
    """A run is resumed with its own recipe: whoever asks for another must hear of it."""
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "m", screen=toy.Watcher(interrupt_at=3))
    screen = toy.Watcher()
    try:
        run(tmp_path / "m", resume=True, settings={"training.epochs": 9}, screen=screen)
    except ValueError as error:
        screen.messages.append(str(error))
    assert "recipe" in screen.text or "training.epochs" in screen.text


def test_without_its_training_folder_there_is_nothing_to_resume(tmp_path: Path) -> None:
    run(tmp_path / "m", settings={"training.epochs": 1})
    (tmp_path / "m" / "training" / "last.safetensors").unlink()
    (tmp_path / "m" / "training").rmdir()
    regard.load(tmp_path / "m").translate("Sita sees a house.")
    with pytest.raises(ValueError, match=r"nothing to resume: it has no training/last\.safetensors"):
        run(tmp_path / "m", resume=True)


def test_a_damaged_checkpoint_is_one_clear_error(tmp_path: Path) -> None:
    run(tmp_path / "m", settings={"training.epochs": 1})
    file = tmp_path / "m" / "training" / "last.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(ValueError, match="damaged") as error:
        run(tmp_path / "m", settings={"training.epochs": 1}, resume=True)
    assert "last.safetensors" in str(error.value) and "\n" not in str(error.value)


def test_a_checkpoint_by_the_clock_is_as_good_as_any(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written after every update, and the process gone without a word after the eleventh."""
    monkeypatch.setattr(loops, "CHECKPOINT_SECONDS", 0.0)
    real = loops.Loop.update

    class GoneError(BaseException):
        pass

    def gone(loop: loops.Loop, *given: Any, **named: Any) -> None:
        if loop.progress.update == 11:
            raise GoneError
        real(loop, *given, **named)

    monkeypatch.setattr(loops.Loop, "update", gone)
    with pytest.raises(GoneError):
        run(tmp_path / "m")
    monkeypatch.setattr(loops.Loop, "update", real)
    run(tmp_path / "m", resume=True)
    same(tmp_path / "m", whole)
    assert report(tmp_path / "m") == report(whole)


def test_a_run_stays_of_the_kind_that_it_began_with(tmp_path: Path) -> None:
    """Whatever would be chosen today, where no recipe is named."""
    settings = {"training.epochs": 1, "training.validations": 1}
    train(toy.PAIRS, tmp_path / "m", recipe="transformer", settings=settings, device="cpu")
    result = train(toy.PAIRS, tmp_path / "m", resume=True, settings=settings, device="cpu")
    assert result.model.options.kind == "transformer"
