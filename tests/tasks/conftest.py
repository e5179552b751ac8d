"""A small translator, which several tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.tasks.translation.predictor import Translator
from tests.tasks.small import small


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder, trained for 8 updates. Not to be changed."""
    out = tmp_path_factory.mktemp("train") / "model"
    assert isinstance(small(out), Translator)
    return out
