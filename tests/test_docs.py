"""README and docs: their code runs and prints what they show, their commands are valid, their links lead somewhere."""

from __future__ import annotations

import contextlib
import gzip
import io
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

import regard
from regard.cli import app, main
from regard.tasks.registry import task_named
from tests.training import toy, toy_labels

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MORE_PAGES = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
MAX_NOT_RUN = 2
"""Python blocks of all pages that are marked as not run"""
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
FENCED = re.compile(
    r"(?:<!-- (?P<comment>[^\n]*) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$(?:\s*^```\n(?P<output>.*?)^```$)?",
    re.M | re.S,
)
INDENTED = re.compile(r"(?:^    .*\n)+", re.M)
INLINE = re.compile(r"`([^`\n]+)`")


class Block(NamedTuple):
    """A fenced block of a page."""

    kind: str
    text: str
    comment: str
    """the HTML comment on the line before"""
    output: str | None
    """of a Python block: the plain block right after it"""
    line: int


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page; the output of a Python block is part of it."""
    start = 0
    while result := FENCED.search(text, start):
        python = result["kind"] == "python"
        start = result.end() if python or result["output"] is None else result.start("output") - len("```\n")
        line = text.count("\n", 0, result.start("text")) + 1
        yield Block(result["kind"], result["text"], result["comment"] or "", result["output"] if python else None, line)


def run_block(block: Block, page: Path, names: dict[str, object]) -> None:
    """Run a Python block and compare what it prints with the page."""
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    if block.output is not None:
        assert printed.getvalue() == block.output


def runnable_text(page: Path) -> str:
    """Return the text of a page without the sections that change the package, which test_extending.py runs."""
    sections = re.split(r"^(?=## )", page.read_text(encoding="utf-8"), flags=re.M)
    return "".join(section for section in sections if "\n```python\n# regard/" not in section)


def python_blocks(page: Path) -> list[Block]:
    """Return the Python blocks of a page, which run in one namespace."""
    return [block for block in blocks(runnable_text(page)) if block.kind == "python"]


# Files and models that code and commands of the pages name


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a translator, one of the other direction, and a classifier, all tiny."""
    folder = tmp_path_factory.mktemp("models")
    regard.train(toy.PAIRS, folder / "translator", settings=toy.TINY, device="cpu")
    regard.train(toy.PAIRS, folder / "reverse", settings=toy.TINY, reverse=True, device="cpu")
    regard.train(toy_labels.TEXTS, folder / "classifier", task="classify", settings=toy_labels.TINY, device="cpu")
    return folder


@pytest.fixture
def world(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the files that the pages name."""
    monkeypatch.chdir(tmp_path)
    sources, targets = ([f"{pair[side]}\n" for pair in toy.PAIRS[:6]] for side in (0, 1))
    pairs = "".join(f"{source}\t{target}\n" for source, target in toy.PAIRS[:6])
    files = {
        "pairs.tsv": pairs,
        "test.tsv": pairs,
        "dates/test.tsv": pairs,
        "pairs.en": "".join(sources),
        "pairs.fr": "".join(targets),
        "sentences.txt": "".join(sources),
        "texts.txt": "".join(f"{text}\n" for text, _ in toy_labels.TEXTS[:6]),
        "reviews.tsv": "".join(f"{text}\t{label}\n" for text, label in toy_labels.TEXTS),
        "terms.tsv": "boy\tमुलगा|मुलाने\nRegard\t=\n",
        "page.html": "<p>The <b>boy</b> sees a mango.</p>\n",
        "table.csv": "id,title,text\n1,Rahul,Rahul buys a house.\n",
        "test.talp": "0-0 1p1\n" * 6,
        "gold.talp": "0-0 1p1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name, texts in (("train.en.gz", sources), ("train.mr.gz", targets), ("big.gz", sources)):
        (tmp_path / name).write_bytes(gzip.compress("".join(texts).encode()))
    for name in ("links.src", "links.tgt", "links.talp"):
        shutil.copy(ROOT / "regard" / "samples" / "english-marathi" / name, tmp_path / name)
    for name in ("model", "my-model", "aligner", "m", "regard-demo", "dates-model", "MODEL"):
        (tmp_path / name).symlink_to(models / "translator")
    for name in ("model1", "model2", "model3"):  # an ensemble has different folders
        shutil.copytree(models / "translator", tmp_path / name)
    (tmp_path / "reverse-model").symlink_to(models / "reverse")
    (tmp_path / "my-classifier").symlink_to(models / "classifier")
    return tmp_path


def adapt(world: Path, page: Path, models: Path) -> None:
    """Make `model` and `test.tsv` what they are on the page about classifiers."""
    if page.name == "classification.md":
        (world / "model").unlink()
        (world / "model").symlink_to(models / "classifier")
        shutil.copy(world / "reviews.tsv", world / "test.tsv")


# Python


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.name)
def test_python_runs_and_prints_what_the_page_shows(page: Path, world: Path, models: Path) -> None:
    adapt(world, page, models)
    prepared = [block for block in python_blocks(page) if not block.comment.startswith("not run: ")]
    if any("= regard.train(" in block.text for block in prepared):
        (world / "model").unlink()  # the page trains its own
    names: dict[str, object] = {}
    for block in prepared:
        run_block(block, page, names)


def test_few_blocks_are_not_run() -> None:
    skipped = [block for page in PAGES for block in python_blocks(page) if block.comment.startswith("not run: ")]
    assert len(skipped) <= MAX_NOT_RUN
    for block in skipped:
        compile(block.text, "page", "exec")


def test_readme_shows_outputs() -> None:
    assert sum(block.output is not None for block in python_blocks(ROOT / "README.md")) == 4


# Commands


class Line(NamedTuple):
    """A command line of a page."""

    arguments: list[str]
    """after `regard`"""
    output: str
    """what the page shows after `$ regard …`"""

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole command: no part is left out, and its operands come first."""
        operands = self.arguments[1:2] and not self.arguments[1].startswith("-")
        return "…" not in self.arguments and (bool(operands) or self.arguments[0] == "demo")


def shell_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a block, continued ones joined, and what follows each."""
    lines = text.replace("\\\n", " ").split("\n")
    for number, line in enumerate(lines):
        yield line.strip(), "\n".join(lines[number + 1 :])


def arguments(line: str) -> list[str]:
    """Split a command line; "…" in quotes stands for some text."""
    return shlex.split(line.replace('"…"', "'A good boy.'"), comments=True)


def command_lines(page: Path) -> list[Line]:
    """Return the command lines in blocks and in inline code of a page."""
    text = runnable_text(page)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    texts = [block.text for block in blocks(text) if block.kind == ""] + INDENTED.findall(prose)
    result = []
    for block in texts:
        for line, rest in shell_lines(block):
            if start := re.match(r"(\$ |cat \S+ \| )?regard (?=[a-z])", line):
                result.append(Line(arguments(line[start.end() :]), rest if start[1] == "$ " else ""))
    for code in INLINE.findall(INDENTED.sub("", prose)):
        start = re.match(rf"(?:[A-Z_]+=\w+ )?(?:regard |(?=(?:{'|'.join(COMMANDS)}) --))(?=[a-z])", code)
        if start:
            result.append(Line(arguments(code[start.end() :]), ""))
    return result


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_commands_are_valid(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for line in command_lines(page):
        name, *rest = line.arguments
        assert name in COMMANDS, f"regard {name}"
        known = {option for parameter in COMMANDS[name].params for option in parameter.opts} | {"--help"}
        options = {argument for argument in rest if argument.startswith("-")}
        assert options <= known, f"regard {name}: {options - known}"
        if line.is_whole:
            given = COMMANDS[name].make_context(name, rest).params
            if name == "train":
                settings = dict(setting.split("=", 1) for setting in given["set_"] or [])
                task_named(given["task"]).recipe(given["recipe"], settings)


def test_there_are_commands() -> None:
    assert sum(len(command_lines(page)) for page in PAGES) > 80


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_options_exist(page: Path) -> None:
    """An option in inline code is one of a command, or of a benchmark or an example."""
    known = {option for command in COMMANDS.values() for parameter in command.params for option in parameter.opts}
    known |= {"--help"}
    programs = "".join(
        path.read_text(encoding="utf-8") for part in ("benchmarks", "examples") for path in (ROOT / part).rglob("*.py")
    )
    for code in INLINE.findall(page.read_text(encoding="utf-8")):
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", code):
            assert option in known or f'"{option}"' in programs, option


RUN = ("translate", "classify", "evaluate", "align", "look", "pattern")
"""commands that are quick with a tiny model"""


def runs(line: Line) -> bool:
    """Return whether the test runs this line; a .png needs fonts."""
    placeholders = any(each in ("PAIRS", "FILE") or each.endswith(".png") for each in line.arguments)
    return line.arguments[0] in RUN and line.is_whole and not placeholders


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(map(runs, command_lines(page)))], ids=lambda page: page.name
)
def test_commands_run(
    page: Path, world: Path, models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    adapt(world, page, models)
    for line in filter(runs, command_lines(page)):
        monkeypatch.setattr(sys, "argv", ["regard", *line.arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((world / "sentences.txt").read_bytes())))
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert ended.value.code == 0, (line.arguments, printed.err)
        if line.output:
            assert printed.out == line.output


# Links


@pytest.mark.parametrize("page", MORE_PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, section in re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", page.read_text(encoding="utf-8")):
        path = page.parent / target if target else page
        assert path.exists(), target
        if section:
            titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), flags=re.M)
            assert section in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}, section


@pytest.mark.parametrize("page", MORE_PAGES, ids=lambda page: page.name)
def test_files_exist(page: Path) -> None:
    """A file of ours in inline code exists, here or somewhere in the package; NAME stands for any."""
    paths = [
        path.relative_to(ROOT).as_posix()
        for part in ("regard", "tests", "benchmarks", "docs", "examples")
        for path in (ROOT / part).rglob("*.py")
    ]
    for name in re.findall(r"`([\w/]+\.py)`", page.read_text(encoding="utf-8")):
        assert "NAME" in name or any(f"/{path}".endswith(f"/{name}") for path in paths), name


@pytest.mark.parametrize("page", MORE_PAGES, ids=lambda page: page.name)
def test_nothing_is_left_to_be_filled_in(page: Path) -> None:
    assert not re.search(r"^[A-Z]{4,}$", page.read_text(encoding="utf-8"), flags=re.M)
