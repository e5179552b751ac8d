"""Traces in a terminal or as files, whose format follows from the suffix of the name.

An answer of several words is shown as a grid, or as links. A single word about a text, such as a label, is shown as the
text itself with its words highlighted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.look.layout import Picture, grid_picture, links_picture
from regard.look.table import table
from regard.look.terminal import grid
from regard.look.text_view import marked, passage, text_picture
from regard.look.trace import Trace
from regard.look.trace_files import write
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
    """Whether the file shows one attention in one view; a page and JSON hold everything."""
    return path.suffix.lower() in PICTURES


def check_view(view: str | None) -> None:
    """Raise a ValueError if there is no such view."""
    if view is not None and view not in VIEWS:
        raise ValueError(f"view: expected {' or '.join(VIEWS)}, got {view!r}")


def check_shown(view: str | None, files: Sequence[Path], terminal: bool) -> None:
    """Raise a ValueError if there is no such view, or neither the files nor the terminal can show it."""
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
    """Return a trace for the terminal: a grid, or the text with its words highlighted; a terminal shows no links."""
    check_view(view)
    if _kind(trace, view, attention, pieces) == "text":
        return marked(passage(trace, attention=attention, layer=layer, head=head), colours=colours)
    shown = table(trace, attention=attention, layer=layer, head=head, pieces=pieces)
    return grid(shown, colours=colours)


def _kind(trace: Trace, view: str | None, attention: str | None, pieces: bool) -> str:
    """Return the requested view, or the default for this trace."""
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
    """Write traces to a file and return the files written: pages and JSON hold all traces, pictures one each, numbered.

    `attention`, `layer`, `head` and `pieces` choose what a picture shows; a page and JSON hold everything. If a picture
    cannot be made, because a font is missing, the error is raised after the others are written.
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
    pictures = [_picture(trace, view, attention, layer, head, pieces) for trace in traces]
    failed = []
    for picture, file in zip(pictures, files, strict=True):
        try:
            _write(picture, file)
        except ValueError as error:
            failed.append(f"{file}: {error}")
    if failed:
        more = f"; {len(failed)} of {len(files)} pictures could not be made" if len(files) > 1 else ""
        raise ValueError(f"{failed[0]}{more}")
    return files


def _picture(
    trace: Trace, view: str | None, attention: str | None, layer: int | None, head: int | None, pieces: bool
) -> Picture:
    kind = _kind(trace, view, attention, pieces)
    if kind == "text":
        return text_picture(passage(trace, attention=attention, layer=layer, head=head))
    shown = table(trace, attention=attention, layer=layer, head=head, pieces=pieces)
    return grid_picture(shown) if kind == "grid" else links_picture(shown)


def _write(picture: Picture, file: Path) -> None:
    if file.suffix.lower() == ".svg":
        from regard.look import svg

        write_file(file, svg.render(picture))
    else:
        from regard.look import png

        png.save_picture(picture, file)


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}-{number}{path.suffix}")
