"""docs/extending.md: examples that add files to the package run in a copy of it, changed as the page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_docs import ROOT, blocks

PAGE = ROOT / "docs" / "extending.md"
MAX_CHANGED = 2
"""files of the package that an example may change, besides its own"""


def section(title: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def apply(diff: str, folder: Path) -> str:
    """Change a file as a diff without line numbers says, and return its name."""
    name = re.match(r"--- (\S+)\n", diff)
    assert name is not None, diff
    path = folder / name[1]
    text = path.read_text(encoding="utf-8")
    for hunk in diff.split("@@\n")[1:]:
        lines = hunk.splitlines(keepends=True)
        before, after = ("".join(line[1:] for line in lines if line[0] in f" {sign}") for sign in "-+")
        assert text.count(before) == 1, f"{name[1]} has {text.count(before)} times:\n{before}"
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")
    return name[1]


@pytest.mark.parametrize("title", ["A task", "A model", "A view"])
def test_example_runs_in_a_changed_copy(title: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "regard", tmp_path / "regard", ignore=shutil.ignore_patterns("__pycache__"))
    changed, own, ran = set(), 0, 0
    for block in blocks(section(title)):
        file = re.match(r"# (regard/\S+\.py)\n", block.text)
        if block.kind == "diff":
            changed.add(apply(block.text, tmp_path))
        elif file:
            path = tmp_path / file[1]
            assert not path.exists(), "an example has files of its own"
            path.parent.mkdir(exist_ok=True)
            path.with_name("__init__.py").touch()
            path.write_text(block.text.partition("\n")[2], encoding="utf-8")
            own += 1
        elif block.kind == "python":
            assert block.output is not None
            (tmp_path / "example.py").write_text(block.text, encoding="utf-8")
            environment = {**os.environ, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}
            command = [sys.executable, "example.py"]
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=120)
            assert done.returncode == 0, done.stderr.decode()
            assert done.stdout.decode() == block.output
            ran += 1
    assert own and ran and 1 <= len(changed) <= MAX_CHANGED
