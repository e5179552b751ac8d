"""regard.compare: what it trains, what it finds, and what it writes."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.experiments.compare.page import comparison_content
from regard.experiments.compare.reading import read_comparison
from regard.metrics.translation import group, score
from regard.text.split import split
from tests.experiments.compare import tiny
from tests.experiments.compare.test_progress import Lines
from tests.look.browser import Open
from tests.look.conftest import browser, show  # noqa: F401, fixtures
from tests.training import toy


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compare")


@pytest.fixture(scope="module")
def watched() -> Lines:
    return Lines()


@pytest.fixture(scope="module")
def comparison(here: Path, watched: Lines) -> regard.Comparison:
    """A recurrent model, a Transformer, and a kind that fails."""
    return tiny.compare(
        here / "out",
        recipes=[tiny.recipe(here), tiny.transformer(here)],
        vary=[f"{tiny.FAILS} model.score=general"],
        gold=tiny.gold_files(here),
        languages=("en", "mr"),
        watcher=watched,
    )


def test_a_kind_that_fails_does_not_end_the_rest(comparison: regard.Comparison, watched: Lines) -> None:
    assert {kind.name for kind in comparison.trained} == {"tiny", "attends"}
    bad = comparison.kinds[-1]
    assert bad.name == f"tiny {tiny.FAILS} score=general" and bad.p_value is None
    assert "token" in bad.failures[0] and "\n" not in bad.failures[0]
    assert f"failed: {bad.failures[0]}" in str(comparison)
    assert "3 runs (3 kinds x 1 seed), 1 at a time" in watched.messages
    assert watched.messages[-3].startswith("run 1 of 3: tiny, seed 1: done in ")
    assert watched.messages[-2] == f"run 2 of 3: {bad.name}, seed 1: failed: {bad.failures[0]}"


def test_scores_are_those_of_the_models_on_the_same_dev_set(comparison: regard.Comparison, here: Path) -> None:
    _, dev = split(toy.pairs())
    sources, references = group(dev)
    lines = (here / "out/dev.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["source"] for line in lines] == sources
    for kind in comparison.trained:
        (run,) = kind.runs
        model = regard.load(run.folder, "cpu", "fp32")
        assert isinstance(model, regard.Translator) and model.translate(sources) == list(run.hypotheses)
        assert run.chrf == score(run.hypotheses, references).chrf == model.card["scores"]["chrf"]
        assert run.parameters == model.card["parameters"] and run.minutes == model.card["minutes"]
        assert run.sentences_per_second > 1 and run.aer is not None and 0 <= run.aer <= 1
        assert model.card["languages"] == ["en", "mr"] and model.card["seed"] == 1
    scores = [kind.runs[0].chrf for kind in comparison.trained]
    assert scores == sorted(scores, reverse=True) and scores[0] > 20


def test_files(comparison: regard.Comparison, here: Path) -> None:
    content = json.loads((here / "out/compare.json").read_text(encoding="utf-8"))
    assert content == json.loads(json.dumps(comparison.as_dict()))
    rows = list(csv.DictReader((here / "out/compare.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["kind"] for row in rows] == [kind.name for kind in comparison.kinds]
    assert {path.name for path in (here / "out").iterdir()} == {
        *("plan.json", "dev.jsonl", "train.jsonl", "runs", "compare.json", "compare.csv", "compare.html")
    }
    runs = [path.relative_to(here / "out/runs").as_posix() for path in (here / "out/runs").glob("*/*/*")]
    assert "tiny/seed-1/result.json" in runs and "attends/seed-1/model" in runs
    assert not any("stderr" in path.name for path in (here / "out").rglob("*"))


def test_it_is_read_again_from_its_folder(comparison: regard.Comparison, tmp_path: Path) -> None:
    again = read_comparison(comparison.folder)
    assert again.as_dict() == comparison.as_dict()
    assert comparison_content(again) == comparison_content(comparison)
    with pytest.raises(ValueError, match=r"plan\.json"):
        read_comparison(tmp_path)


def test_resuming_does_only_what_is_missing(comparison: regard.Comparison, here: Path) -> None:
    """The kind that failed is tried again, another set of gold links is scored; nothing is trained again."""
    weights = {path: path.stat().st_mtime_ns for path in (here / "out").rglob("model.safetensors")}
    watched = Lines()
    given: dict[str, Any] = {
        "recipes": [here / "tiny.toml", here / "attends.toml"],
        "vary": [f"{tiny.FAILS}, model.score=general"],
        "languages": ("en", "mr"),
        "resume": True,
        "watcher": watched,
    }
    again = tiny.compare(here / "out", gold=[here / "gold.tsv", here / "gold.talp"], **given)
    assert "3 runs (3 kinds x 1 seed), 1 at a time; 2 of them done before" in watched.messages
    assert [message[:12] for message in watched.messages if message.startswith("run ")] == ["run 3 of 3: "]
    assert [kind.as_dict() for kind in again.kinds] == [kind.as_dict() for kind in comparison.kinds]
    assert {path: path.stat().st_mtime_ns for path in weights} == weights
    for changed, name in (
        ({"data": toy.PAIRS[:70]}, "data"),
        ({"seeds": 2}, "seeds"),
        ({"vary": None}, "kinds"),
        ({"minutes": 1.0}, "minutes"),
        ({"dev": toy.PAIRS[:8]}, "dev data"),
        ({"reverse": True}, "data"),
    ):
        with pytest.raises(ValueError, match=f"begun with other {name}; resume with what it began with"):
            tiny.compare(here / "out", **(given | changed))


def test_every_kind_fails(tmp_path: Path) -> None:
    recipe = tiny.recipe(tmp_path, **{"training.max_tokens": 1})
    with pytest.raises(ValueError, match=r"out: every run failed: .*token"):
        tiny.compare(tmp_path / "out", recipes=[recipe])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": 0}, "seeds: expected a whole number from 1"),
        ({"minutes": float("nan")}, "minutes: expected a number above 0"),
        ({"jobs": 0}, "jobs: expected a whole number of at least 1"),
        ({"precision": "fp8"}, "precision: expected"),
        ({"gold": ["gold.tsv"]}, "gold: expected a file of pairs or two parallel files, then one of links; got 1"),
        ({"data": [("a", "b", "c")]}, "expected .source, target. texts"),
        ({"resume": True}, "nothing to resume"),
        ({"resume": True, "overwrite": True}, "contradict each other"),
        ({"vary": ["training.max_characters=5"]}, "training.max_characters: expected the same for all kinds"),
    ],
)
def test_refusals(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        tiny.compare(tmp_path / "out", **given)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for given in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(ValueError, match=r"expected the folder of a comparison, or nothing; it has no plan.json"):
            tiny.compare(tmp_path / "out", **given)
    (tmp_path / "out/plan.json").write_text("{")
    with pytest.raises(ValueError, match="there already; expected --resume, to go on, or --overwrite"):
        tiny.compare(tmp_path / "out")
    with pytest.raises(ValueError, match=r"plan.json: damaged"):
        tiny.compare(tmp_path / "out", resume=True)
    (tmp_path / "other.new").mkdir()
    with pytest.raises(ValueError, match="in the way"):
        tiny.compare(tmp_path / "other")


# The page


def test_the_page(comparison: regard.Comparison, show: Open) -> None:  # noqa: F811
    tab = show(comparison.page.read_text(encoding="utf-8"))
    assert tab.locator(".conclusions p").first.inner_text() == comparison.conclusions[0]
    rows = tab.locator(".results tbody tr")
    assert [rows.nth(row).locator(".kind").inner_text() for row in range(3)] == [kind.name for kind in comparison.kinds]
    assert comparison.kinds[2].failures[0] in rows.nth(2).inner_text()
    assert f"{comparison.best.runs[0].chrf:.1f}" in rows.nth(0).inner_text()
    paths = tab.locator(".chart path")
    assert paths.count() == 2 and all(len(re.findall("[ML]", paths.nth(n).get_attribute("d"))) == 3 for n in range(2))
    assert tab.locator(".grids .grid").count() == 2 and tab.locator(".texts > div").count() == 4
    sentences = tab.locator(".list button")
    assert sentences.count() == 16
    differences = [float(text) for text in tab.locator(".list .spread").all_inner_texts()]
    assert differences == sorted(differences, reverse=True)
    sentences.nth(3).click()
    text = sentences.nth(3).locator("span").last.inner_text()
    assert tab.locator(".texts .source dd").first.inner_text() == text
    assert dict(toy.PAIRS)[text] in tab.locator(".texts .reference").inner_text()


def test_pointing_at_the_page(comparison: regard.Comparison, show: Open) -> None:  # noqa: F811
    tab = show(comparison.page.read_text(encoding="utf-8"))
    tab.locator(".grids .cell").first.hover()
    assert re.fullmatch(r"\S+ looks at \S+ with \d\.\d\d", tab.locator(".pointed").first.inner_text())
    assert tab.locator(".head.on").count() == 2, "the same word of the source in both grids"
    tab.locator(".results tbody tr").first.hover()
    assert tab.locator(".chart .dim").count() == 1
    before = tab.locator(".chart path").first.get_attribute("d")
    tab.locator("input[value='0']").check(force=True)
    assert (
        tab.locator(".chart path").first.get_attribute("d") != before
        and "updates" in tab.locator(".chart").inner_text()
    )
    menu = tab.locator(".grids select").first
    cells = tab.locator(".grids .grid").last.inner_text(), tab.locator(".grids .grid").first.inner_text()
    menu.select_option("1")
    assert cells != (tab.locator(".grids .grid").last.inner_text(), tab.locator(".grids .grid").first.inner_text())


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_on_a_phone(comparison: regard.Comparison, show: Open, dark: bool) -> None:  # noqa: F811
    scheme = "dark" if dark else "light"
    tab = show(comparison.page.read_text(encoding="utf-8"), viewport={"width": 390, "height": 800}, color_scheme=scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") == 390, "only the table scrolls sideways"
    assert tab.locator(".grids .grid").count() == 2
