"""`regard look`: pictures and pages of traces that were kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def look(
    kept: Annotated[Path, typer.Argument(help="A file of traces (.json), or with --history the folder of a model.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .html, .svg, .png, .pdf or .json file; none: in the terminal."),
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="How the attention of a model came to be, as a page.")
    ] = False,
    view: Annotated[str, typer.Option(help="Of a picture: grid or links.")] = "grid",
    attention: Annotated[str, typer.Option(help="Of a picture: cross, encoder, decoder or pool.")] = "cross",
    layer: Annotated[int | None, typer.Option(min=0, help="Of a picture: one layer; none: the mean.")] = None,
    head: Annotated[int | None, typer.Option(min=0, help="Of a picture: one head; none: the mean.")] = None,
    pieces: Annotated[bool, typer.Option("--pieces", help="Of a picture: by pieces of words.")] = False,
) -> None:
    """Show what a model looked at, from a file that `translate --look FILE.json` wrote."""
    from regard.commands.screen import complain
    from regard.look import views
    from regard.look.trace import read

    if history:
        _history(kept, output)
        return
    if not kept.exists():
        raise ValueError(f"{kept}: expected a file of traces, and there is none")
    if kept.is_dir():
        raise ValueError(f"{kept}: expected a file of traces, got a folder; --history shows how a model learned")
    if output is not None:
        views.check(output, view)
    traces = read(kept)
    if output is None:
        from regard.look.table import table
        from regard.look.terminal import grid, in_colour

        for trace in traces:
            shown = table(trace, attention=attention, layer=layer, head=head, pieces=pieces)
            typer.echo(f"{trace.source.text}\n{trace.target.text}\n\n{grid(shown, colours=in_colour(sys.stdout))}\n")
        return
    written = views.save(traces, output, view=view, attention=attention, layer=layer, head=head, pieces=pieces)
    for file in written:
        complain(f"written: {file}")


def _history(folder: Path, output: Path | None) -> None:
    from regard.commands.screen import complain
    from regard.folder import LOG
    from regard.look.history import read_moments
    from regard.look.page import history_page

    if not folder.is_dir():
        raise ValueError(f"{folder}: expected the folder of a model with --history, got a file")
    path = output or Path("history.html")
    if path.suffix.lower() != ".html":
        raise ValueError(f"output: expected a .html file with --history, got {path.name!r}")
    found = read_moments(folder / LOG)
    path.write_text(history_page(found, title=folder.name), encoding="utf-8", newline="\n")
    complain(f"written: {path}")
