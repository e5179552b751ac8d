"""What tests of translators share: a small one that has learned its pairs."""

from __future__ import annotations

from pathlib import Path

import pytest

import regard
from regard.tasks.translation.predictor import Translator
from tests.training import toy


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("translator") / "model"
    regard.train(toy.PAIRS, out, settings=toy.LEARNS, device="cpu", precision="fp32")
    return out


@pytest.fixture(scope="session")
def translator(folder: Path) -> Translator:
    return regard.load(folder, "cpu", "fp32")
