"""Runs in processes: what they report, how they fail, and what they import."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from regard.experiments.compare.job import TrainingJob
from regard.experiments.processes import RunProcess, run_all
from regard.experiments.worker import EventScreen
from regard.runtime import processes

JOB = TrainingJob(
    *("out", "run", "rnn", 1, "", ["pairs.tsv"], None, False, None, None),
    *(1.0, 1, "cpu", "fp32", None, None, []),
)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Let runs execute a script in place of the worker: what it prints is up to the test."""
    script = [""]
    start = processes.subprocess.Popen

    def popen(command: list[str], **options: object) -> object:
        assert command[1:] == ["-P", "-m", "regard.experiments.worker"]
        return start([sys.executable, "-c", script[0]], **options)  # type: ignore[call-overload]

    monkeypatch.setattr(processes.subprocess, "Popen", popen)
    return script


def outcome(script: str, scripted: list[str], folder: Path) -> tuple[str | None, RunProcess]:
    scripted[0] = script
    ended: list[tuple[str | None, RunProcess]] = []
    job = replace(JOB, run=str(folder / "run"))
    run_all([job], 1, lambda *_: None, lambda run, failure: ended.append((failure, run)))
    return ended[0]


def test_events(scripted: list[str], tmp_path: Path) -> None:
    script = (
        'import sys; job = sys.stdin.readline(); print("warming up"); print(3)\n'
        'print(\'{"done": 3, "total": 4, "text": "loss 2"}\'); print(\'{"failed": "no pair"}\')'
    )
    failure, run = outcome(script, scripted, tmp_path)
    assert failure == "no pair" and run.fraction == 0.75 and run.activity == "loss 2"
    assert list(tmp_path.iterdir()) == []  # what it wrote on standard error is read and deleted


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("raise SystemExit(3)", "its process ended with code 3"),
        ("import sys; print('odd'); sys.exit('out of luck')", "out of luck"),
        ("import os, sys; os.kill(os.getpid(), 9)", f"its process was killed by signal {int(signal.SIGKILL)}"),
    ],
)
def test_a_process_that_breaks(script: str, reason: str, scripted: list[str], tmp_path: Path) -> None:
    assert outcome(script, scripted, tmp_path)[0] == reason


def test_every_run_gets_a_free_gpu(scripted: list[str], tmp_path: Path) -> None:
    scripted[0] = "import sys; sys.stdin.readline(); sys.stdin.readline()"  # waits until it is stopped
    jobs = [replace(JOB, run=str(tmp_path / str(number)), device=None) for number in range(3)]
    seen: list[list[str | None]] = []

    def watch(active: Sequence[RunProcess], waiting: int) -> None:
        seen.append([run.job.device for run in active])
        active[len(seen) % len(active)].stop()

    run_all(jobs, 2, watch, lambda *_: None, ["cuda:0", "cuda:1"])
    assert seen[0] == ["cuda:0", "cuda:1"]
    assert all(len(set(devices)) == len(devices) for devices in seen), "two runs never share one"


def test_a_run_imports_this_package_and_no_file_of_the_present_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "random.py").write_text("raise RuntimeError('the wrong module')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    run = RunProcess(replace(JOB, run=str(tmp_path / "run"), recipe='base = "nothing"'))
    run._reader.join()
    run._process.wait()
    failure = run.finish()
    assert failure is not None and failure.startswith("recipe: base: expected rnn"), failure


def test_jobs_can_be_written_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    EventScreen(sys.stdout).send(**asdict(JOB))
    assert capsys.readouterr().out.count("\n") == 1
