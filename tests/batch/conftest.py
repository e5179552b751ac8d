"""What tests of sharded translation share: a small translator, and a file of lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.batch.lines import LINES
from tests.tasks.small import small


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder, trained for 8 updates. Not to be changed."""
    out = tmp_path_factory.mktemp("batch") / "model"
    small(out)
    return out


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Some lines: repeated, empty and over-long ones among them."""
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path
