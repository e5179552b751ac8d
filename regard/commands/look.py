"""`regard look`: pictures and pages of saved traces."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from regard.commands.options import refuse_idle
from regard.commands.screen import complain

if TYPE_CHECKING:
    from regard.look.trace import Trace

HISTORY_PAGE = Path("history.html")  # where `--history` writes without -o
TracesOrModel = Annotated[
    Path, Argument(metavar="path", help="A file of traces (.json), or with --history the folder of a model.")
]
Output = Annotated[
    Path | None,
    Option(
        "--output",
        "-o",
        help="A .html, .svg, .png, .pdf or .json file. Default: the terminal; with --history, history.html.",
    ),
]
History = Annotated[
    bool, Option("--history", help="Write a page of how the attention of a model developed in training.")
]
View = Annotated[
    str | None, Option(help="Of a picture: grid, links or text. Default: text for labels, otherwise grid.")
]
AttentionName = Annotated[
    str | None, Option(help="Of a picture: cross, encoder, decoder or pool. Default: the attention to the source.")
]


def look(
    path: TracesOrModel,
    output: Output = None,
    history: History = False,
    view: View = None,
    attention: AttentionName = None,
    layer: Annotated[int | None, Option(min=0, help="Of a picture: one layer. Default: the mean of all.")] = None,
    head: Annotated[int | None, Option(min=0, help="Of a picture: one head. Default: the mean of all.")] = None,
    pieces: Annotated[bool, Option("--pieces", help="Of a picture: show pieces of words, not words.")] = False,
) -> None:
    """Show the attention in a file that `translate` or `classify` wrote with `--look FILE.json`."""
    from regard.look import views
    from regard.look.trace_files import read

    chosen: dict[str, Any] = {"attention": attention, "layer": layer, "head": head, "pieces": pieces}
    given = {f"--{name}": value for name, value in {"view": view, **chosen}.items()}
    if history:
        refuse_idle(given, "--history shows everything")
        _write_history(path, output)
        return
    if output is not None and output.suffix.lower() in views.ENDINGS and not views.is_picture(output):
        refuse_idle(given, f"a {output.suffix} holds everything; expected a picture, {', '.join(views.PICTURES)}")
    if view == "text":
        refuse_idle({"--pieces": pieces}, "the view text is by words")
    if not path.exists():
        raise ValueError(f"{path}: expected a file of traces, and there is none")
    if path.is_dir():
        raise ValueError(f"{path}: expected a file of traces, got a folder; --history shows how a model learned")
    views.check_shown(view, [] if output is None else [output], terminal=output is None)
    if output is not None:
        views.check(output)
    traces = read(path)
    if output is None:
        _print_traces(traces, view=view, **chosen)
        return
    for file in views.save(traces, output, view=view, **chosen):
        complain(f"written: {file}")


def _print_traces(traces: Sequence[Trace], **options: Any) -> None:
    """Print each trace with its texts; the options are those of `views.in_terminal`."""
    from regard.look import views
    from regard.look.table import visible
    from regard.look.terminal import in_colour

    for trace in traces:
        shown = views.in_terminal(trace, colours=in_colour(sys.stdout), **options)
        typer.echo(f"{visible(trace.source.text)}\n{visible(trace.target.text)}\n\n{shown}\n")


def _write_history(folder: Path, output: Path | None) -> None:
    """Write the page of the validations of a training run."""
    from regard.config.folder import LOG
    from regard.look import views
    from regard.look.history import read_moments
    from regard.look.page import history_page
    from regard.runtime.files import write_file

    if not folder.is_dir():
        what = "got a file" if folder.exists() else "and there is none"
        raise ValueError(f"{folder}: expected the folder of a model with --history, {what}")
    path = output or HISTORY_PAGE
    if output is None and path.exists():
        raise ValueError(f"{path}: there already; expected -o to say where to write")
    if path.suffix.lower() != ".html":
        raise ValueError(f"output: expected a .html file with --history, got {path.name!r}")
    views.check(path)
    text = history_page(read_moments(folder / LOG), title=f"How {folder.resolve().name} learned where to look")
    write_file(path, text)
    complain(f"written: {path}")
