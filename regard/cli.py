"""The command line: `regard demo`, `regard pattern`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from regard import __version__

app = typer.Typer(
    name="regard",
    help="Attention you can train, use and look into.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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


@app.command()
def demo() -> None:
    """Walk one sentence through attention, and draw patterns."""
    from rich.console import Console

    from regard.demo import run

    run(Console(highlight=False))


@app.command()
def pattern(
    text: Annotated[str, typer.Argument(help="Such as 'window(4) | global(0)' or 'per_head(causal, strided(4))'.")],
    queries: Annotated[int, typer.Option("--queries", "-n", min=1, max=4096, help="How many queries to draw.")] = 32,
    keys: Annotated[int | None, typer.Option(min=1, max=4096, help="How many keys (default: as many).")] = None,
    position: Annotated[int, typer.Option(min=0, max=2**31 - 5000, help="Where the first query stands.")] = 0,
) -> None:
    """Draw which query may look at which key: a row a query, a column a key, ■ where it may look.

    Beyond 64 positions a cell holds several, and its shade (· ░ ▒ ▓ █) is the share of pairs that may look.

    Names: full, causal, window, strided, dilated, global, random, blocks, longformer, bigbird, per_head; also & and |.
    """
    from regard.core.pattern_text import parse

    typer.echo(parse(text).draw(queries, keys, position))


def main() -> None:
    """A user's mistake is one line on standard error and exit code 2, never a traceback."""
    try:
        app()
    except (ValueError, TypeError, OSError) as error:
        print(f"regard: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
