"""Traces in a terminal or as files: the ending of the name says which view.

An answer in several words is a grid, or links. One in a single word about a text, as a label is, is the text itself
with its words marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.look.layout import Picture, grid_picture, links_picture
from regard.look.table import table
from regard.look.terminal import grid
from regard.look.text_view import marked, passage, text_picture
from regard.look.trace import Trace, write
from regard.runtime.files import check_output, write_file

PICTURES = (".svg", ".png", ".pdf")
ENDINGS = (".html", *PICTURES, ".json")
VIEWS = ("grid", "links", "text")


def check(path: Path) -> None:
    """Raise a ValueError if the file cannot be written, before anything is computed for it."""
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"look: expected terminal or a file that ends in {', '.join(ENDINGS)}, got {str(path)!r}")
    if not path.parent.is_dir():
        raise ValueError(f"look: expected a folder that is there, got {str(path.parent)!r}")
    check_output(path)


def is_picture(path: Path) -> bool:
    """Does the file show one attention in one view? A page and JSON hold everything."""
    return path.suffix.lower() in PICTURES


def check_view(view: str | None) -> None:
    if view is not None and view not in VIEWS:
        raise ValueError(f"view: expected {' or '.join(VIEWS)}, got {view!r}")


def check_shown(view: str | None, files: Sequence[Path], terminal: bool) -> None:
    """Raise a ValueError if there is no such view, or nothing among the files and the terminal that could show it."""
    check_view(view)
    if view is None or any(map(is_picture, files)):
        return
    if not terminal:
        raise ValueError(f"view: no effect on a page or JSON, which hold everything; expected {', '.join(PICTURES)}")
    if view == "links":
        raise ValueError(f"view: a terminal shows no links; expected grid or text, or a file, {', '.join(PICTURES)}")


def in_terminal(
    trace: Trace,
    *,
    colours: bool,
    view: str | None = None,
    attention: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    pieces: bool = False,
) -> str:
    """A grid, or the text with its words marked; there are no links in a terminal."""
    check_view(view)
    if _kind(trace, view, attention, pieces) == "text":
        return marked(passage(trace, attention=attention, layer=layer, head=head), colours=colours)
    shown = table(trace, attention=attention, layer=layer, head=head, pieces=pieces)
    return grid(shown, colours=colours)


def _kind(trace: Trace, view: str | None, attention: str | None, pieces: bool) -> str:
    """The view that was asked for, or the one that suits."""
    pooled = (attention or trace.usual) == "pool"
    return view or ("text" if pooled and len(trace.target.words) == 1 and not pieces else "grid")


def save(
    traces: Sequence[Trace],
    path: Path,
    *,
    view: str | None = None,
    attention: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    pieces: bool = False,
) -> list[Path]:
    """The files written. Pages and JSON take many traces; of pictures each gets one, numbered where there are several.

    `attention`, `layer`, `head` and `pieces` choose what a picture shows; a page and JSON hold everything. A picture
    that cannot be made, for want of a font, is an error once the others are written.
    """
    check(path)
    check_view(view)
    if path.suffix.lower() == ".json":
        write(traces, path)
        return [path]
    if path.suffix.lower() == ".html":
        from regard.look.page import page

        write_file(path, page(traces))
        return [path]
    files = [path] if len(traces) == 1 else [_numbered(path, number) for number in range(1, len(traces) + 1)]
    shown = [_drawn(trace, _kind(trace, view, attention, pieces), attention, layer, head, pieces) for trace in traces]
    failed = []
    for each, file in zip(shown, files, strict=True):
        try:
            _write(each, file)
        except ValueError as error:
            failed.append(f"{file}: {error}")
    if failed:
        more = f"; {len(failed)} of {len(files)} pictures could not be made" if len(files) > 1 else ""
        raise ValueError(f"{failed[0]}{more}")
    return files


def _drawn(
    trace: Trace, view: str, attention: str | None, layer: int | None, head: int | None, pieces: bool
) -> Picture:
    if view == "text":
        return text_picture(passage(trace, attention=attention, layer=layer, head=head))
    shown = table(trace, attention=attention, layer=layer, head=head, pieces=pieces)
    return grid_picture(shown) if view == "grid" else links_picture(shown)


def _write(picture: Picture, file: Path) -> None:
    if file.suffix.lower() == ".svg":
        from regard.look import svg

        write_file(file, svg.drawn(picture))
    else:
        from regard.look import png

        png.save_picture(picture, file)


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}-{number}{path.suffix}")
