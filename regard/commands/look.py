"""`regard look`: pictures and pages of traces that were kept."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

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

    if history:
        _history(kept, output)
        return
    chosen: dict[str, Any] = {"attention": attention, "layer": layer, "head": head, "pieces": pieces}
    if not kept.exists():
        raise ValueError(f"{kept}: expected a file of traces, and there is none")
    if kept.is_dir():
        raise ValueError(f"{kept}: expected a file of traces, got a folder; --history shows how a model learned")
    if output is not None:
        views.check(output, view)
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
    from regard.folder import LOG
    from regard.look import views
    from regard.look.history import read_moments
    from regard.look.page import history_page

    if not folder.is_dir():
        what = "got a file" if folder.exists() else "and there is none"
        raise ValueError(f"{folder}: expected the folder of a model with --history, {what}")
    path = output or Path("history.html")
    if path.suffix.lower() != ".html":
        raise ValueError(f"output: expected a .html file with --history, got {path.name!r}")
    views.check(path)
    text = history_page(read_moments(folder / LOG), title=f"How {folder.resolve().name} learned where to look")
    path.write_text(text, encoding="utf-8", newline="\n")
    complain(f"written: {path}")
