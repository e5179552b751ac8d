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
from regard.commands.notices import warnings_as_notices
from regard.commands.pattern import pattern
from regard.commands.screen import complain
from regard.commands.train import train
from regard.commands.translate import translate

INTERRUPTED = 130
"""the exit code after Ctrl-C"""

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
    """A user's mistake is one line on standard error and exit code 2, never a traceback; so is Ctrl-C, with 130."""
    try:
        with warnings_as_notices():
            app()
    except (ValueError, TypeError, OSError) as error:
        complain(str(error))
        sys.exit(2)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # what typer makes of Ctrl-C
            complain("interrupted")
        raise


if __name__ == "__main__":
    main()
