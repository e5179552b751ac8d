"""Traces in a terminal or as files, whose format follows from the suffix of the name.

An answer of several words is shown as a grid, or as links. A single word about a text, such as a label, is shown as the
text itself with its words highlighted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from regard.look import png, svg
from regard.look.layout import Picture, grid_picture, links_picture
from regard.look.page import page
from regard.look.table import TableOptions, table
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


def in_terminal(trace: Trace, *, colours: bool, view: str | None = None, **options: Unpack[TableOptions]) -> str:
    """Return a trace for the terminal: a grid, or the text with its words highlighted; a terminal shows no links."""
    check_view(view)
    if _kind(trace, view, options) == "text":
        return marked(passage(trace, **options), colours=colours)
    return grid(table(trace, **options), colours=colours)


def _kind(trace: Trace, view: str | None, options: TableOptions) -> str:
    """Return the requested view, or the default for this trace."""
    pooled = (options.get("attention") or trace.default_attention) == "pool"
    return view or ("text" if pooled and len(trace.target.words) == 1 and not options.get("pieces") else "grid")


def save(
    traces: Sequence[Trace], path: Path, *, view: str | None = None, **options: Unpack[TableOptions]
) -> list[Path]:
    """Write traces to a file and return the files written: pages and JSON hold all traces, pictures one each, numbered.

    The options choose what a picture shows; a page and JSON hold everything. If a picture cannot be made, because a
    font is missing, the error is raised after the others are written.
    """
    check(path)
    check_view(view)
    if path.suffix.lower() == ".json":
        write(traces, path)
        return [path]
    if path.suffix.lower() == ".html":
        write_file(path, page(traces))
        return [path]
    numbered = [path.with_name(f"{path.stem}-{number}{path.suffix}") for number in range(1, len(traces) + 1)]
    files = [path] if len(traces) == 1 else numbered
    pictures = [_picture(trace, view, options) for trace in traces]
    failed = []
    for picture, file in zip(pictures, files, strict=True):
        try:
            if file.suffix.lower() == ".svg":
                write_file(file, svg.render(picture))
            else:
                png.save_picture(picture, file)
        except ValueError as error:
            failed.append(f"{file}: {error}")
    if failed:
        more = f"; {len(failed)} of {len(files)} pictures could not be made" if len(files) > 1 else ""
        raise ValueError(f"{failed[0]}{more}")
    return files


def _picture(trace: Trace, view: str | None, options: TableOptions) -> Picture:
    kind = _kind(trace, view, options)
    if kind == "text":
        return text_picture(passage(trace, **options))
    shown = table(trace, **options)
    return grid_picture(shown) if kind == "grid" else links_picture(shown)
