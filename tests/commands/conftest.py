"""What tests of commands share: a model, and a way to run a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.run import SETTINGS, Inside, regard
from tests.training import toy


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    return Inside(monkeypatch, capsys)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """pairs.tsv, and a model trained on it by the command."""
    here = tmp_path_factory.mktemp("commands")
    pairs = toy.write_tsv(here / "pairs.tsv")
    done = regard("train", pairs, "--out", here / "model", *SETTINGS, "--threads", "1", "--from", "en", "--to", "mr")
    assert done.returncode == 0 and done.stdout == "", done.stderr
    (here / "train.log").write_text(done.stderr, encoding="utf-8")
    return here
