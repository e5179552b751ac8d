"""Draws the weights that each line of kinds.md gives: `python docs/draw_kinds.py` writes docs/kinds/*.svg."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from regard.look.colours import level
from regard.look.layout import Cell
from regard.look.svg import document, element

PAGE = Path(__file__).with_name("kinds.md")
SIDE = 9.0
"""of a cell"""
ROW = re.compile(r"^\| (?P<kind>[^|]+) \|.*\| `(?P<line>out = [^`]*)` \| !\[\]\((?P<picture>[^)]*)\) \|$", re.M)


class Kind(NamedTuple):
    kind: str
    line: str
    picture: str
    weights: np.ndarray[Any, np.dtype[np.float32]]
    """[rows, columns]"""


def kinds() -> Iterator[Kind]:
    """Every kind on the page, in order, with the weights that its line gives: of batches and heads the first."""
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    blocks = re.finditer(r"```python\n(.*?)```", text, flags=re.S)
    for found in sorted([*blocks, *ROW.finditer(text)], key=lambda each: each.start()):
        if found.re is not ROW:
            exec(found[1], names)
            continue
        torch.manual_seed(1)
        exec(found["line"], names)
        weights = names["out"].weights.detach().float()
        while weights.dim() > 2:
            weights = weights[0]
        yield Kind(found["kind"], found["line"], found["picture"], weights.numpy())


def drawn(kind: Kind) -> str:
    """SVG: from the smallest weight to the largest, on light paper darker and darker, on dark paper lighter."""
    rows, columns = kind.weights.shape
    least = float(kind.weights.min())
    wide = max(float(kind.weights.max()) - least, 1e-6)
    cells = [
        Cell(1 + column * SIDE, 1 + row * SIDE, SIDE - 1, SIDE - 1, level((float(weight) - least) / wide))
        for (row, column), weight in np.ndenumerate(kind.weights)
    ]
    used = sorted({cell.level for cell in cells})
    return document(columns * SIDE + 1, rows * SIDE + 1, map(element, cells), used, f"weights of {kind.kind}")


if __name__ == "__main__":
    for each in kinds():
        path = PAGE.with_name(each.picture.partition("/")[0]) / each.picture.partition("/")[2]
        path.write_text(drawn(each), encoding="utf-8", newline="\n")
        print(f"{each.picture}: {each.weights.shape[0]} × {each.weights.shape[1]}")
