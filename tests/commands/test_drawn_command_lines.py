"""A thousand drawn command lines: no traceback, an exit code of 0 or 2, one clear line, no file changed unasked."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.commands.drawn_command_lines import command_line
from tests.commands.drawn_runs import CommandLine, Ended, World, fault

CASES = 1000
PARTS = 10
PROCESSES = 50


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("drawn"))


def run(world: World, number: int, as_process: bool = False) -> int:
    line = command_line(number)
    ended = world.run(line, as_process)
    wrong = fault(line, ended)
    assert wrong is None, f"case {number}: {wrong}: {shlex.join(line.arguments)!a}\n{ended.trace}{ended.stderr}"
    return ended.code


@pytest.mark.parametrize("part", range(PARTS))
def test_in_this_process(part: int, world: World) -> None:
    size = CASES // PARTS
    codes = Counter(run(world, number) for number in range(part * size, (part + 1) * size))
    assert codes[0] >= size // 8 and codes[2] >= size // 8, "both what works and what does not are drawn"


def test_as_processes(world: World) -> None:
    codes = Counter(run(world, number, as_process=True) for number in range(0, CASES, CASES // PROCESSES))
    assert codes[0] and codes[2]


def test_a_process_of_its_own_says_the_same(world: World) -> None:
    """Once without a fork: started as a user starts it."""
    line = next(line for line in map(command_line, range(CASES)) if line.arguments[0] == "pattern")
    command = [sys.executable, "-m", "regard", *line.arguments]
    done = subprocess.run(command, capture_output=True, input=line.stdin, cwd=world.folder)
    ended = world.run(line)
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (ended.code, ended.stdout, ended.stderr)


def test_cases_are_the_same_every_time() -> None:
    assert [command_line(number) for number in range(50)] == [command_line(number) for number in range(50)]


@pytest.mark.parametrize(
    ("ended", "message"),
    [
        (Ended(1, "", "", "Traceback"), "a traceback"),
        (Ended(1, "", "regard: x\n"), "exit code 1"),
        (Ended(2, "", ""), "refused without a word"),
        (Ended(2, "", "Usage: x\nregard: x\n"), "standard error has 'Usage: x'"),
        (Ended(2, "", "regard: x"), "does not end with a line end"),
        (Ended(0, "", ""), "no result"),
        (Ended(0, "x", "", changed=["few.tsv"]), "'few.tsv' was changed"),
        (Ended(2, "", "regard: x\n", changed=["out/.regard-1.tmp"]), "was changed"),
        (Ended(0, "x", "", changed=["out/a.txt"]), None),
    ],
)
def test_what_is_wrong_is_noticed(ended: Ended, message: str | None) -> None:
    result = fault(CommandLine(["align", "rnn", "-o", "out/a.txt"]), ended)
    assert result is None if message is None else result is not None and message in result


def test_a_file_that_is_changed_is_noticed_and_put_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil() -> None:
        Path("few.tsv").write_text("spoilt")
        Path("pairs.tsv").unlink()
        Path("empty.tsv").chmod(0o600)
        sys.exit(0)

    before = (world.folder / "few.tsv").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("regard.cli.main", spoil)
        assert world.run(CommandLine(["pattern"])).changed == ["empty.tsv", "few.tsv", "pairs.tsv"]
    assert (world.folder / "few.tsv").read_bytes() == before
    assert world.run(CommandLine(["pattern", "full"])).changed == []
