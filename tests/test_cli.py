"""The command line: its help, what it imports, and the demo."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import regard as package
from regard.look import trace_files
from tests.commands.run import regard
from tests.look.traces import marathi


def test_version_and_help() -> None:
    assert regard("--version").stdout.startswith("regard 0.")
    message = regard("--help").stdout
    assert all(command in message for command in ("demo", "train", "translate", "evaluate", "align", "look", "pattern"))


@pytest.mark.parametrize("arguments", [None, ["--help"], ["--version"], ["train", "--help"], ["look", "TRACE"]])
def test_torch_is_imported_only_when_needed(arguments: list[str] | None, tmp_path: Path) -> None:
    """`import regard`, help, the version and views of saved traces start without it."""
    trace_files.write([marathi()], tmp_path / "trace.json")
    given = [str(tmp_path / "trace.json") if each == "TRACE" else each for each in arguments or []]
    script = (
        "import sys, regard\n"
        f"sys.argv[1:] = {given!r}\n"
        "from regard.__main__ import main\n"
        f"try: {'pass' if arguments is None else 'main()'}\n"
        "except SystemExit as ended: assert not ended.code\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_demo_trains_translates_and_shows(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    done = regard("demo", "--minutes", "0.2", "--out", out, "--threads", "1", environment={"LC_ALL": "C"})
    assert done.returncode == 0, done.stderr
    assert "Rahul is a good boy  →  " in done.stdout
    assert "Exact match on sentences it has not seen" in done.stdout
    head = next(line for line in done.stdout.split("\n") if line.split() == ["Rahul", "is", "a", "good", "boy", "⏹"])
    rows = done.stdout.split(head + "\n")[1].split("\n\n")[0].split("\n")
    assert rows and all(len(re.findall(r" \d\.\d\d", row)) == 6 for row in rows), "a grid of weights"
    assert "Next:" in done.stdout and f"regard translate {out}" in done.stdout and "regard train" in done.stdout
    assert "validations" in done.stderr and "Traceback" not in done.stderr
    assert package.load(out, "cpu").card["languages"] == ["en", "mr"]
