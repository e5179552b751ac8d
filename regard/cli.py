"""The command line: `regard demo`, `train`, `translate` and the other commands of regard/commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from regard.commands.align import align
from regard.commands.calibrate import calibrate
from regard.commands.classify import classify
from regard.commands.compare import compare
from regard.commands.demo import demo
from regard.commands.doctor import doctor
from regard.commands.errors import UsageError, describe, describe_usage, is_out_of_memory
from regard.commands.evaluate import evaluate
from regard.commands.look import look
from regard.commands.pattern import pattern
from regard.commands.screen import complain, warnings_as_notices
from regard.commands.serve import serve, studio
from regard.commands.streams import abandon_output, prepare_streams
from regard.commands.train import train
from regard.commands.translate import translate
from regard.commands.tune import tune
from regard.runtime import launch
from regard.runtime.interrupts import EXIT_CODE, interrupt_flag
from regard.runtime.launch import ReportedElsewhereError
from regard.runtime.version import __version__

BROKEN_PIPE = 141  # the exit code of a program that SIGPIPE ends: 128 and the number of the signal

app = typer.Typer(
    name="regard",
    help="Attention you can train, use and look into.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: boxes leave little room for text in a narrow terminal
)
COMMANDS: dict[Callable[..., None], str] = {
    demo: "Train on the sample, translate, and show the attention.",
    train: "Train a model on sentence pairs or labelled texts.",
    tune: "Train a model further on new sentence pairs or labelled texts.",
    translate: "Translate texts: one line out for every line in.",
    classify: "Label texts: one label per line.",
    evaluate: "Score a model on sentence pairs or labelled texts.",
    calibrate: "Fit the confidence of a translator on sentence pairs.",
    align: "Align the words of sentence pairs.",
    look: "Show saved attention, and how a model learned it.",
    compare: "Train several kinds of attention on the same data and compare them.",
    studio: "Open a page on your own models: translate, look, compare, train.",
    serve: "Serve models to other programs by HTTP.",
    pattern: "Draw an attention pattern.",
    doctor: "Print what a bug report needs, and test this installation.",
}
for command, summary in COMMANDS.items():
    app.command(short_help=summary)(command)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"regard {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def regard(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Attention you can train, use and look into."""
    if context.invoked_subcommand is None and not version:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command of `sys.argv`. A user's mistake is one line on standard error and exit code 2."""
    prepare_streams()
    try:
        code = _run(sys.argv[1:])
        sys.stdout.flush()  # now, while an error can still be reported
    except BrokenPipeError:  # the reader of the results has closed the pipe
        abandon_output()
        code = BROKEN_PIPE
    except OSError as error:
        abandon_output()
        _report(describe(error))
        code = 2
    if launch.connection.made:  # threads of torch's process group may be left, which must not outlive Python
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Run a command and return its exit code. Errors of reading and writing are left to the caller."""
    group = typer.main.get_command(app)
    try:
        with warnings_as_notices(), group.make_context("regard", arguments) as context:
            group.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except ReportedElsewhereError:
        return 2
    except (KeyboardInterrupt, typer.Abort):
        if launch.rank() == 0:
            complain("interrupted")
        return EXIT_CODE
    except UsageError as error:
        _report(describe_usage(error, arguments))
        return 2
    except (ValueError, TypeError, MemoryError) as error:
        if interrupt_flag.received:  # the interrupt surfaced as this error
            complain("interrupted")
            return EXIT_CODE
        _report(describe(error))
        return 2
    except RuntimeError as error:
        if interrupt_flag.received or not is_out_of_memory(error):
            raise
        complain(f"out of memory: {error}")
        return 2
    return 0


def _report(text: str) -> None:
    """Print an error as one line; of several processes with the same one, the first does."""
    if launch.reports_errors():
        complain(text)


if __name__ == "__main__":
    main()
