"""`regard.translate_file`: workers as processes, killed at any moment."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

import regard
from regard.batch import run
from regard.batch.run import translate_file, worker_tasks
from tests.batch.lines import (
    LINES,
    NOTICES,
    OPTIONS,
    SHARD_LINES,
    expected,
    joined,
    kill_one_owner,
    no_claims,
    owners,
    wait_until,
)

SHARDS = -(-len(LINES) // SHARD_LINES)
POISON = """
import os
import regard.batch.work as work
translate = work.translate_lines
def poisoned(translator, lines, options, shard):
    if shard == 1:
        os.kill(os.getpid(), 9)
    return translate(translator, lines, options, shard)
work.translate_lines = poisoned
"""


class Screen:
    """Remembers what was shown."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def advance(self, done: int, total: int | None, text: str, unit: str = "update") -> None:
        self.lines.append(f"{done} of {total} {text}")

    def status(self, text: str) -> None: ...

    def close(self) -> None: ...


def translate(
    model: Path, file: Path, shards: Path, workers: int = 2, screen: Screen | None = None
) -> regard.ShardReport:
    options = {"search": OPTIONS.search, "precision": OPTIONS.precision, "shard_lines": SHARD_LINES}
    return translate_file(model, file, shards, workers=workers, threads=1, device="cpu", screen=screen, **options)  # type: ignore[arg-type]


def test_two_workers_one_killed(model: Path, file: Path, tmp_path: Path) -> None:
    killed: list[int] = []
    killer = threading.Thread(target=lambda: killed.append(kill_one_owner(tmp_path / "shards")))
    killer.start()
    screen = Screen()
    report = translate(model, file, tmp_path / "shards", screen=screen)
    killer.join()
    assert "a worker was killed by signal 9; another takes its place" in screen.lines
    assert (report.shards, report.lines, report.failures) == (SHARDS, len(LINES), {}) and report.notices == NOTICES
    assert joined(tmp_path / "shards", tmp_path / "out") == expected(model)
    assert no_claims(tmp_path / "shards") and not list(tmp_path.rglob("*.new"))
    again = translate(model, file, tmp_path / "shards", workers=1)
    assert again.lines == len(LINES) and again.notices == 0  # nothing was left to do


def test_the_parent_is_killed_and_its_workers_end(model: Path, file: Path, tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    script = (
        "from pathlib import Path; from tests.batch.test_run import translate;"
        f"translate(Path({str(model)!r}), Path({str(file)!r}), Path({str(shards)!r}))"
    )
    parent = subprocess.Popen([sys.executable, "-c", script])
    wait_until(lambda: bool(owners(shards)))
    workers = owners(shards)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), 20)
    assert no_claims(shards) and len(list(shards.rglob("*.txt"))) < SHARDS
    translate(model, file, shards, workers=1)
    assert joined(shards, tmp_path / "out") == expected(model)


def test_a_line_that_kills_its_worker(model: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(POISON)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    message = rf"1 of {SHARDS} shards failed: lines 21 to 40 \(its worker died\); the others are done"
    with pytest.raises(ValueError, match=message):
        translate(model, file, tmp_path / "shards", workers=1)
    assert len(list((tmp_path / "shards" / "target").rglob("*.txt"))) == SHARDS - 1
    monkeypatch.delenv("PYTHONPATH")
    assert translate(model, file, tmp_path / "shards", workers=1).failures == {}  # tried again
    assert joined(tmp_path / "shards", tmp_path / "out") == expected(model)


def test_workers_that_all_die(model: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.batch.workers.MAX_DEATHS", 1)
    (tmp_path / "sitecustomize.py").write_text(POISON.replace("shard == 1", "True"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ValueError, match="1 workers in a row died: the last one was killed by signal 9"):
        translate(model, file, tmp_path / "shards", workers=1)


def test_workers_that_cannot_start(model: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os, sys; print('no luck', file=sys.stderr); os._exit(9)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ValueError, match="no worker can start: the last one ended with code 9: no luck"):
        translate(model, file, tmp_path / "shards", workers=1)


def test_a_damaged_model_is_one_error(model: Path, file: Path, tmp_path: Path) -> None:
    for name in ("card.json", "recipe.toml", "tokenizer.json", "source.json", "target.json"):
        if (model / name).exists():
            (tmp_path / "model").mkdir(exist_ok=True)
            (tmp_path / "model" / name).write_bytes((model / name).read_bytes())
    (tmp_path / "model" / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(ValueError, match=r"model.safetensors: damaged"):
        translate(tmp_path / "model", file, tmp_path / "shards", workers=1)
    assert no_claims(tmp_path / "shards")


def test_without_ray_a_sentence_says_how_to_get_it(
    model: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"on_ray needs Ray Data .*`pip install 'ray\[data\]'` installs it"):
        regard.on_ray(model, file, tmp_path / "shards")
    assert not (tmp_path / "shards").exists()


def test_tasks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run, "available_cores", lambda: 8)
    assert [task.threads for task in worker_tasks(tmp_path, [tmp_path], "cpu", 3, None)] == [2, 2, 2]
    assert [task.threads for task in worker_tasks(tmp_path, [tmp_path], "cpu", None, None)] == [8]
    monkeypatch.setattr(run, "read_device", lambda name: torch.device(name or "cuda"))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [task.device for task in worker_tasks(tmp_path, [tmp_path], None, None, None)] == ["cuda:0", "cuda:1"]
    assert [task.device for task in worker_tasks(tmp_path, [tmp_path], "cuda", 3, 1)] == ["cuda:0", "cuda:1", "cuda:0"]
    assert [task.device for task in worker_tasks(tmp_path, [tmp_path], "cuda:1", None, 1)] == ["cuda:1"]
    for name, values in {"workers": (0, None), "threads": (None, 0)}.items():
        with pytest.raises(ValueError, match=f"{name}: expected a whole number ≥ 1, got 0"):
            worker_tasks(tmp_path, [tmp_path], "cpu", *values)
    with pytest.raises(ValueError, match="shard_lines: expected a whole number"):
        run.whole_number_or_none("shard_lines", 0)


def test_sources_are_read_again_from_the_folder(model: Path, file: Path, tmp_path: Path) -> None:
    """An input that changes afterwards is refused, and an empty one has no shards."""
    (tmp_path / "empty").touch()
    assert translate(model, tmp_path / "empty", tmp_path / "none", workers=1).shards == 0
    assert joined(tmp_path / "none", tmp_path / "out") == ""
    with pytest.raises(ValueError, match="another input"):
        translate(model, file, tmp_path / "none", workers=1)
    with pytest.raises(ValueError, match="expected a file, and there is none"):
        translate(model, tmp_path / "nothing", tmp_path / "new", workers=1)
    assert not (tmp_path / "new").exists()
