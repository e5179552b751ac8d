"""`regard look`: pictures and pages of traces that were kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.commands.flags import refuse_idle

HISTORY = Path("history.html")
"""where the page goes if -o does not say"""


def look(
    kept: Annotated[Path, typer.Argument(help="A file of traces (.json), or with --history the folder of a model.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A .html, .svg, .png, .pdf or .json file; none: terminal; --history: history.html.",
        ),
    ] = None,
    history: Annotated[
        bool,
        typer.Option("--history", help="How the attention of a model came to be, as a page."),
    ] = False,
    view: Annotated[
        str | None, typer.Option(help="Of a picture: grid, links or text. Default: text of labels, else grid.")
    ] = None,
    attention: Annotated[
        str | None, typer.Option(help="Of a picture: cross, encoder, decoder or pool. Default: at the source.")
    ] = None,
    layer: Annotated[int | None, typer.Option(min=0, help="Of a picture: one layer; none: the mean.")] = None,
    head: Annotated[int | None, typer.Option(min=0, help="Of a picture: one head; none: the mean.")] = None,
    pieces: Annotated[bool, typer.Option("--pieces", help="Of a picture: by pieces of words.")] = False,
) -> None:
    """Show what a model looked at, from a file that `translate --look FILE.json` wrote."""
    from regard.commands.screen import complain
    from regard.look import views
    from regard.look.trace import read

    chosen: dict[str, Any] = {"attention": attention, "layer": layer, "head": head, "pieces": pieces}
    given = {f"--{name}": value for name, value in {"view": view, **chosen}.items()}
    if history:
        refuse_idle(given, "--history shows everything")
        _history(kept, output)
        return
    if output is not None and output.suffix.lower() in views.ENDINGS and not views.is_picture(output):
        refuse_idle(given, f"a {output.suffix} holds everything; expected a picture, {', '.join(views.PICTURES)}")
    if view == "text":
        refuse_idle({"--pieces": pieces}, "the view text is by words")
    if not kept.exists():
        raise ValueError(f"{kept}: expected a file of traces, and there is none")
    if kept.is_dir():
        raise ValueError(f"{kept}: expected a file of traces, got a folder; --history shows how a model learned")
    views.check_shown(view, [] if output is None else [output], terminal=output is None)
    if output is not None:
        views.check(output)
    traces = read(kept)
    if output is None:
        from regard.look.table import visible
        from regard.look.terminal import in_colour

        for trace in traces:
            shown = views.in_terminal(trace, colours=in_colour(sys.stdout), view=view, **chosen)
            typer.echo(f"{visible(trace.source.text)}\n{visible(trace.target.text)}\n\n{shown}\n")
        return
    written = views.save(traces, output, view=view, **chosen)
    for file in written:
        complain(f"written: {file}")


def _history(folder: Path, output: Path | None) -> None:
    from regard.commands.screen import complain
    from regard.config.folder import LOG
    from regard.look import views
    from regard.look.history import read_moments
    from regard.look.page import history_page
    from regard.runtime.files import write_file

    if not folder.is_dir():
        what = "got a file" if folder.exists() else "and there is none"
        raise ValueError(f"{folder}: expected the folder of a model with --history, {what}")
    path = output or HISTORY
    if output is None and path.exists():
        raise ValueError(f"{path}: there already; expected -o to say where to write")
    if path.suffix.lower() != ".html":
        raise ValueError(f"output: expected a .html file with --history, got {path.name!r}")
    views.check(path)
    text = history_page(read_moments(folder / LOG), title=f"How {folder.resolve().name} learned where to look")
    write_file(path, text)
    complain(f"written: {path}")
