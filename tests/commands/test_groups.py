"""Groups of options are, to the command line, the options of their fields."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer import Argument, Option
from typer.testing import CliRunner

from regard.commands.groups import given, with_groups

Names = Annotated[list[str] | None, Argument(help="Names.")]
Count = Annotated[int, Option(min=1, help="How many.")]
Out = Annotated[Path | None, Option("--output", "-o", help="Where to.")]
Loud = Annotated[bool, Option("--loud", help="Say it aloud.")]
From = Annotated[str | None, Option("--from", help="Who says it.")]


@dataclass(frozen=True)
class Greeting:
    names: Names = None
    count: Count = 1
    from_: From = None


@dataclass(frozen=True)
class Place:
    output: Out = None

    def __post_init__(self) -> None:
        if self.output is not None and self.output.suffix != ".txt":
            raise ValueError(f"--output: expected a .txt, got {self.output}")


def app() -> tuple[typer.Typer, list[tuple[Greeting, Place, bool]]]:
    calls: list[tuple[Greeting, Place, bool]] = []
    result = typer.Typer()

    @result.command()
    @with_groups
    def greet(*, greeting: Greeting, place: Place, loud: Loud = False) -> None:
        """Greet everyone."""
        calls.append((greeting, place, loud))

    return result, calls


def test_a_command_gets_its_groups() -> None:
    command, calls = app()
    done = CliRunner().invoke(command, ["Asha", "Ravi", "--count", "2", "--from", "Sita", "-o", "a.txt", "--loud"])
    assert done.exit_code == 0, done.output
    assert calls == [(Greeting(["Asha", "Ravi"], 2, "Sita"), Place(Path("a.txt")), True)]


def test_defaults_are_those_of_the_fields() -> None:
    command, calls = app()
    assert CliRunner().invoke(command, []).exit_code == 0
    ((greeting, place, loud),) = calls
    assert (greeting.count, greeting.from_, place, loud) == (1, None, Place(), False)
    assert all(value is None for value in given(greeting).values())


def test_options_are_listed_and_checked() -> None:
    command, _ = app()
    listed = CliRunner().invoke(command, ["--help"]).output
    assert "Greet everyone." in listed
    assert all(name in listed for name in ("--count", "--from", "--output", "-o", "--loud"))
    assert CliRunner().invoke(command, ["--count", "0"]).exit_code == 2
    done = CliRunner().invoke(command, ["-o", "a.html"])
    assert isinstance(done.exception, ValueError) and "expected a .txt" in str(done.exception)


@pytest.mark.parametrize(
    ("greeting", "expected"),
    [
        (Greeting(count=3), {"--count": 3}),
        (Greeting(from_="Sita"), {"--from": "Sita"}),
        (Greeting(names=[]), {}),
        (Greeting(names=["Asha"]), {"--names": ["Asha"]}),
    ],
)
def test_given_options_differ_from_their_defaults(greeting: Greeting, expected: dict[str, object]) -> None:
    assert {name: value for name, value in given(greeting).items() if value is not None} == expected
