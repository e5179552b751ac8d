"""What README and docs show is what comes out."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from regard import parse_pattern

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_readme_code_runs_and_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python blocks run in order; a plain block right behind one is its output."""
    blocks = re.findall(r"```(\w*)\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)
    monkeypatch.chdir(tmp_path)  # one of them trains a model
    names: dict[str, object] = {}
    shown = 0
    for (kind, text), (next_kind, output) in zip(blocks, [*blocks[1:], ("end", "")], strict=True):
        if kind != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(text, names)
        if next_kind == "":
            assert printed.getvalue() == output
            shown += 1
    assert shown == 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_drawn_patterns_are_those_of_the_command(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for pattern, count, drawing in re.findall(r"```\n\$ regard pattern '(.*?)' -n (\d+)\n(.*?)```", text, flags=re.S):
        assert parse_pattern(pattern).draw(int(count)) + "\n" == drawing


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([\w./-]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_nothing_is_left_to_be_filled_in(page: Path) -> None:
    assert not re.search(r"^[A-Z]{4,}$", page.read_text(encoding="utf-8"), flags=re.M)
