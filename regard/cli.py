"""The command line: `regard demo`, `train`, `translate`, `classify`, `evaluate`, `align`, `look`, `pattern`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from regard import __version__
from regard.commands.align import align
from regard.commands.classify import classify
from regard.commands.demo import demo
from regard.commands.evaluate import evaluate
from regard.commands.look import look
from regard.commands.pattern import pattern
from regard.commands.train import train
from regard.commands.translate import translate

app = typer.Typer(
    name="regard",
    help="Attention you can train, use and look into.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (demo, train, translate, classify, evaluate, align, look, pattern):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"regard {__version__}")
        raise typer.Exit


@app.callback()
def regard(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Attention you can train, use and look into."""


def main() -> None:
    """A user's mistake is one line on standard error and exit code 2, never a traceback."""
    try:
        app()
    except (ValueError, TypeError, OSError) as error:
        print(f"regard: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
