"""Traces as files: the ending of the name says which view."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.look.trace import Trace, write

ENDINGS = (".html", ".svg", ".png", ".pdf", ".json")
VIEWS = ("grid", "links")


def check(path: Path, view: str = "grid") -> None:
    """Before anything is computed: can this be written?"""
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"look: expected terminal or a file that ends in {', '.join(ENDINGS)}, got {str(path)!r}")
    if view not in VIEWS:
        raise ValueError(f"view: expected {' or '.join(VIEWS)}, got {view!r}")
    if not path.parent.is_dir():
        raise ValueError(f"look: expected a folder that is there, got {str(path.parent)!r}")


def save(
    traces: Sequence[Trace],
    path: Path,
    *,
    view: str = "grid",
    attention: str = "cross",
    layer: int | None = None,
    head: int | None = None,
    pieces: bool = False,
) -> list[Path]:
    """The files written. Pages and JSON take many traces; of pictures each gets one, numbered where there are several.

    `attention`, `layer`, `head` and `pieces` choose what a picture shows; a page and JSON hold everything.
    """
    check(path, view)
    if path.suffix.lower() == ".json":
        write(traces, path)
        return [path]
    if path.suffix.lower() == ".html":
        from regard.look.page import page

        path.write_text(page(traces), encoding="utf-8", newline="\n")
        return [path]
    from regard.look.table import table

    files = [path] if len(traces) == 1 else [_numbered(path, number) for number in range(1, len(traces) + 1)]
    for trace, file in zip(traces, files, strict=True):
        shown = table(trace, attention=attention, layer=layer, head=head, pieces=pieces)
        if path.suffix.lower() == ".svg":
            from regard.look import svg

            file.write_text(getattr(svg, view)(shown), encoding="utf-8", newline="\n")
        else:
            from regard.look import png

            png.save(shown, file, view)
    return files


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}-{number}{path.suffix}")
