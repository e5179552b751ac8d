"""Ctrl-C, before training and in it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.commands.run import SETTINGS, SOURCES, Inside
from tests.training import toy


def interrupted(arguments: list[Any], out: Path, validations: int = 2) -> tuple[int, str]:
    run = subprocess.Popen(
        [sys.executable, "-m", "regard", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    log = out / "log.jsonl"
    began = time.monotonic()
    while not log.exists() or log.read_bytes().count(b'"validation"') < validations:
        time.sleep(0.02)
        assert run.poll() is None and time.monotonic() - began < 100
    run.send_signal(signal.SIGINT)
    stdout, stderr = run.communicate(timeout=60)
    assert stdout == b""
    return run.returncode, stderr.decode()


def test_control_c_keeps_what_was_learned(files: Path, tmp_path: Path, inside: Inside) -> None:
    out = tmp_path / "model"
    command = ["train", files / "pairs.tsv", "--out", out, *SETTINGS, "--set", "training.epochs=500"]
    code, message = interrupted([*command, "--set", "training.validations=400", "--threads", "1"], out)
    assert code == 130, "128 + SIGINT, as shells have it"
    assert "Traceback" not in message and "what was learned so far is kept; go on with --resume" in message
    assert [file.name for file in tmp_path.iterdir()] == ["model"] and not list(tmp_path.rglob("*.new"))
    done = inside("translate", out, SOURCES[0])
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 1
    (notice,) = done.stderr.splitlines()
    assert notice.startswith(f"regard: {out}: its training has not ended") and "--resume" in notice


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc how far the process is")
@pytest.mark.parametrize("during", ["imports", "vocabulary"])
def test_control_c_before_training_begins_leaves_nothing(during: str, tmp_path: Path) -> None:
    """One line, no traceback, no file."""
    texts = [(f"{source} {number}", target) for number in range(400) for source, target in toy.PAIRS]
    data, lock = toy.write_tsv(tmp_path / "pairs.tsv", texts), tmp_path / ".model.lock"
    command = [sys.executable, "-m", "regard", "train", str(data), "--out", str(tmp_path / "model"), *SETTINGS]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    maps, began = Path(f"/proc/{run.pid}/maps"), time.monotonic()
    while not (lock.exists() if during == "vocabulary" else "torch" in maps.read_text()):
        time.sleep(0.01)
        assert run.poll() is None and time.monotonic() - began < 100
    time.sleep(0.3)
    run.send_signal(signal.SIGINT)
    stdout, stderr = run.communicate(timeout=60)
    assert (run.returncode, stdout) == (130, b"")
    assert stderr.decode().splitlines()[-1] == "regard: interrupted" and b"Traceback" not in stderr
    assert [file.name for file in tmp_path.iterdir()] == ["pairs.tsv"]


def test_an_interrupt_that_an_import_turns_into_another_error_is_still_one() -> None:
    """As extension modules do."""
    script = (
        "import os, signal, sys, types, regard.__main__ as entry\n"
        "def run():\n"
        "    try: os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt: raise ImportError('initialization failed') from None\n"
        "sys.modules['regard.cli'] = types.SimpleNamespace(main=run)\n"
        "entry.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "regard: interrupted\n")
