"""Several processes train one model: as one process would, bit for bit again after an interruption or a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import regard
from regard.training import progress as reports
from tests.launching import FIXED, free_port, launch
from tests.training import distributed_runs, toy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trainings of two processes."""
    folder = tmp_path_factory.mktemp("two")
    toy.write_tsv(folder / "pairs.tsv")
    ended = launch(2, "-m", "tests.training.distributed_runs", str(folder))
    assert [code for code, _ in ended] == [0, 0], "\n".join(error for _, error in ended)
    return folder


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same trainings in one process, which adds up the gradients of two batches."""
    folder, threads = tmp_path_factory.mktemp("one"), torch.get_num_threads()
    toy.write_tsv(folder / "pairs.tsv")
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reports, "LOG_INTERVAL", 1)
        distributed_runs.same_runs(folder, 2)
    yield folder
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", ["rnn", "transformer", "labels"])
def test_two_processes_are_as_one(name: str, folder: Path, one: Path) -> None:
    losses = [[entry for entry in toy.log(each / name) if entry["kind"] == "update"] for each in (folder, one)]
    assert len(losses[0]) == len(losses[1]) > 5
    for ours, theirs in zip(*losses, strict=True):
        assert (ours["update"], ours["tokens"]) == (theirs["update"], theirs["tokens"])
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-4, abs=1.1e-4)  # logged with 4 digits
    (ours_dev, theirs_dev) = (
        [entry["dev_loss"] for entry in toy.log(each / name) if entry["kind"] == "validation"] for each in (folder, one)
    )
    assert ours_dev == pytest.approx(theirs_dev, rel=1e-3)
    assert regard.load(folder / name).card["processes"] == 2 and "processes" not in regard.load(one / name).card


def test_an_interruption_changes_nothing(folder: Path) -> None:
    """Of one process of two, by SIGTERM: both end after the same update, and a checkpoint has the state of both."""
    assert toy.differing(toy.weights(folder / "broken"), toy.weights(folder / "whole")) == []
    assert toy.differing(toy.last(folder / "broken"), toy.last(folder / "whole")) == []
    states = [name for name in toy.last(folder / "whole") if name.startswith("random/") and name.endswith("cpu")]
    assert sorted(states) == ["random/1/cpu", "random/cpu"]
    messages = [entry["text"] for entry in toy.log(folder / "broken") if entry["kind"] == "message"]
    assert sum("interrupted" in text for text in messages) == 1


def test_a_run_by_the_clock_ends_in_time(folder: Path) -> None:
    (end,) = [entry for entry in toy.log(folder / "clock") if entry["kind"] == "end"]
    assert end["update"] > 0 and (folder / "clock" / "model.safetensors").exists()


def test_what_failed_left_nothing(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    assert names == {"pairs.tsv", "rnn", "transformer", "labels", "whole", "broken", "clock"}


def test_other_numbers_of_processes_resume_the_same_updates(folder: Path, tmp_path: Path) -> None:
    """A run of two processes goes on in one that adds up two batches; not with other updates."""
    settings = distributed_runs.DRAWS
    card = regard.load(folder / "whole").card
    result = distributed_runs.run(folder / "whole", settings | {"training.accumulate": 2}, resume=True)
    assert result.card == card, "it had ended"
    with pytest.raises(ValueError, match=r"begun with 2 batches per update; expected as many processes × .* 1 × 1"):
        distributed_runs.run(folder / "whole", settings, resume=True)


def test_a_mistake_is_one_line(tmp_path: Path) -> None:
    arguments = ["train", str(tmp_path / "pairs.tsv"), "--out", str(tmp_path / "m"), "--set", "training.epoch=3"]
    ended = launch(2, "-m", "regard", *arguments)
    assert [code for code, _ in ended] == [2, 2]
    assert ended[0][1].count("\n") == 1 and "did you mean 'training.epochs'?" in ended[0][1]
    assert ended[1][1] == ""


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def rank_of(process: int) -> str:
    environment = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    return next((each.decode() for each in environment if each.startswith(b"RANK=")), "")


def test_a_killed_process_is_restarted(folder: Path, tmp_path: Path) -> None:
    """torchrun starts both again; they go on from the checkpoint, and the model is that of a run without a kill."""
    data, out = toy.write_tsv(tmp_path / "pairs.tsv"), tmp_path / "killed"
    settings = [part for key, value in distributed_runs.DRAWS.items() for part in ("--set", f"{key}={value}")]
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1"]
    torchrun += [
        "--monitor-interval",
        "0.1",
        "--master-port",
        str(free_port()),
        "-m",
        "regard",
        "train",
        str(data),
        "--out",
        str(out),
    ]
    process = subprocess.Popen(
        [sys.executable, *torchrun, "--device", "cpu", "--precision", "fp32", *settings],
        env=os.environ | FIXED,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    log, deadline = out / "log.jsonl", time.monotonic() + 100
    while not log.exists() or log.read_bytes().count(b'"validation"') < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.002)
    (victim,) = [child for child in children(process.pid) if rank_of(child) == "RANK=1"]
    os.kill(victim, signal.SIGKILL)
    try:
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert errors.count("another of the 2 processes has ended, and process 0 ends too") == 1
    (update,) = [line for line in errors.splitlines() if "restarted: the run goes on from update" in line]
    assert 0 < int(update.rpartition(" ")[2]) < 40
    whole = folder / "whole"
    assert toy.differing(toy.weights(out), toy.weights(whole)) == []
    assert toy.differing(toy.last(out), toy.last(whole)) == []
    assert regard.load(out).card["scores"] == regard.load(whole).card["scores"]
