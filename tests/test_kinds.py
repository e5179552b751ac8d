"""docs/kinds.md: every line runs, and its picture is the one that is shown."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_kinds", DOCS / "draw_kinds.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_line_runs_and_is_drawn(drawing: ModuleType) -> None:
    result = list(drawing.kinds())
    text = drawing.PAGE.read_text(encoding="utf-8")
    assert len(result) == text.count("| `out = ") == len({each.picture for each in result})
    for each in result:
        assert np.isfinite(each.weights).all() and each.weights.max() > 0, each.kind
        remaining = (DOCS / each.picture).read_text(encoding="utf-8")
        pattern = r'<g class="s(\d+)">'
        mine, theirs = (np.array(re.findall(pattern, svg), int) for svg in (drawing.drawn(each), remaining))
        assert mine.shape == theirs.shape, each.kind
        if each.kind in ("hard, stochastic", "hard, Gumbel") and torch.__version__ < "2.7":
            continue  # torch.randint of large ranges draws other numbers since 2.7
        # Another processor may round otherwise, and a near tie of hard attention then falls the other way.
        assert (abs(mine - theirs) <= 2).mean() > 0.9, each.kind


def test_no_picture_is_left_over(drawing: ModuleType) -> None:
    shown = set(re.findall(r"\(kinds/([^)]+)\)", drawing.PAGE.read_text(encoding="utf-8")))
    assert shown == {path.name for path in (DOCS / "kinds").iterdir()}
