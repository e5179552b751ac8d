"""Compare, Corpus, Train and Classify as a person uses them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from regard.serving.settings import ServerSettings
from tests.look.conftest import browser  # noqa: F401, a fixture
from tests.serving.studio.asking import tsv
from tests.serving.studio.browser import check_accessibility, fits, studio_tab
from tests.serving.studio.pointing import drop, point_at_cell
from tests.training import toy, toy_labels

TINY = "\n".join(
    f"{key}={value}" for key, value in toy.TINY.items() if key not in ("training.epochs", "training.validations")
)


def test_classify(browser: Any, work_address: str) -> None:  # noqa: F811
    with studio_tab(browser, work_address, "#/classify?text=The film is dreadful, they say.") as tab:
        tab.wait_for_selector(".answer .label:has-text('bad')")
        tab.get_by_label("Text", exact=True).fill("Her play is lovely, they say.")
        tab.wait_for_selector(".answer .label:has-text('good')")
        tab.wait_for_selector(".words .summary:has-text('good')")
        assert "lovely" in tab.locator(".words .summary .pill").first.inner_text()
        assert tab.locator(".answer .bars li").first.inner_text().startswith("good")
        tab.get_by_role("button", name="Test the words").click()
        tab.wait_for_selector("figcaption:has-text('leave one out')")
        assert tab.locator("table.confusion caption").first.inner_text().startswith("Confusion matrix")
        drop(tab, "test.tsv", tsv([*toy_labels.TEXTS[:20], ("The film is boring.", "good")]))
        tab.wait_for_selector("h3:has-text('mistake')")
        tab.get_by_role("button", name="The film is boring.").click()
        tab.wait_for_selector(".answer .label:has-text('bad')")
        drop(tab, "wrong.tsv", "no label\n")
        tab.wait_for_selector("[role=alert]:has-text('wrong.tsv, line 1 is no labelled text')")
        assert "422" in tab.console.pop()
        check_accessibility(tab)


def test_compare(browser: Any, work_address: str) -> None:  # noqa: F811
    with studio_tab(browser, work_address, "#/compare?text=The boy sees a mango.&model=toy&second=attends") as tab:
        tab.wait_for_selector(".comparison .grids figure:nth-child(2)")
        assert tab.locator(".translations tbody tr").count() == 2
        tab.get_by_label("A translation of your own").fill("मुलगा आंबा पाहतो.")
        tab.get_by_role("button", name="Compare", exact=True).click()
        tab.wait_for_selector(".translations tbody tr:nth-child(3)")
        tab.locator("[name=words]").select_option("2")
        tab.wait_for_selector("figcaption:has-text('Difference')")
        assert tab.locator(".comparison .grid").count() == 3
        point_at_cell(tab, 2, 0, 1)
        words = " ".join(tab.locator(".comparison .summary").inner_text().split())
        assert words.startswith("मुलगा looks at boy toy 0.") and "difference" in words
        first, second, difference = (float(each.replace("−", "-")) for each in words.split() if each[-1].isdigit())
        assert abs(first - second - difference) < 0.02
        assert tab.locator(".results tbody tr").count() == 2
        tab.locator(".view-compare .rows button").first.click()
        tab.wait_for_selector(".comparison:not(.waiting)")
        assert tab.get_by_label("Sentence", exact=True).input_value() in dict(toy.PAIRS)
        check_accessibility(tab)


def test_corpus(browser: Any, work_address: str, work_settings: ServerSettings, tmp_path: Path) -> None:  # noqa: F811
    with studio_tab(browser, work_address, "#/corpus?model=toy") as tab:
        drop(tab, "dev.tsv", tsv(toy.PAIRS[:6]))
        tab.wait_for_selector(".scores:has-text('chrF++')")
        rows = tab.locator(".corpus tbody tr")
        assert rows.count() == 6
        tab.get_by_label("Sort by").select_option("score")
        scores = [float(text) for text in rows.locator("td[data-name='chrF++']").all_inner_texts()]
        assert scores == sorted(scores)
        tab.get_by_label("Only sentences with this text").fill("book")
        assert all("book" in text for text in rows.locator("button").all_inner_texts())
        rows.locator("button").first.click()
        tab.wait_for_selector(".sentence .grid")
        source = tab.locator(".sentence .explorer .pair dd").first.inner_text()
        tab.get_by_label("Corrected translation").fill("एक\tनवे  वाक्य.")
        tab.get_by_role("button", name="Save as a pair").click()
        tab.wait_for_selector("[role=status]:has-text('file of suggestions')")
        with tab.expect_download() as download:
            tab.get_by_role("button", name="Download pairs.tsv").click()
        download.value.save_as(tmp_path / "pairs.tsv")
        assert (tmp_path / "pairs.tsv").read_text(encoding="utf-8") == f"{source}\tएक नवे वाक्य.\n"
        assert work_settings.suggestions is not None
        assert f"{source}\tएक नवे वाक्य.\ten\tmr\n" in work_settings.suggestions.read_text(encoding="utf-8")
        tab.get_by_role("button", name="All sentences").click()
        assert rows.first.is_visible()
        check_accessibility(tab)


def test_corpus_on_a_phone(browser: Any, work_address: str) -> None:  # noqa: F811
    with studio_tab(
        browser, work_address, "#/corpus?model=toy", viewport={"width": 390, "height": 800}, color_scheme="dark"
    ) as tab:
        drop(tab, "dev.tsv", tsv(toy.PAIRS[:3]))
        tab.wait_for_selector(".scores:has-text('chrF++')")
        assert tab.locator(".corpus tbody tr").count() == 3
        tab.keyboard.press("Tab")
        tab.locator(".texts-of-row button").nth(1).press("Enter")
        tab.wait_for_selector(".sentence .grid")
        assert fits(tab)
        check_accessibility(tab)


@pytest.mark.parametrize("view", ["compare", "train?run=toy", "classify?text=The film is boring."])
def test_views_on_a_phone(browser: Any, work_address: str, view: str) -> None:  # noqa: F811
    with studio_tab(browser, work_address, f"#/{view}", viewport={"width": 390, "height": 800}) as tab:
        tab.wait_for_selector(".grid")
        assert fits(tab)
        check_accessibility(tab)


def test_train(browser: Any, work_address: str) -> None:  # noqa: F811
    with studio_tab(browser, work_address, "#/train?run=toy") as tab:
        tab.wait_for_selector(".history .grid")
        assert tab.locator(".samples tbody tr").count() == 4
        assert tab.locator(".run .curve:visible").count() == 3
        score = tab.locator(".run > .curves .curve").nth(2).locator("h2 .number")
        last = score.inner_text()
        tab.get_by_role("slider", name="Validation").press("Home")
        tab.wait_for_function(
            "(last) => document.querySelectorAll('.run > .curves h2 .number')[2].textContent !== last", arg=last
        )

        tab.get_by_text("Start a training").click()
        drop(tab, "my pairs.tsv", tsv(toy.PAIRS))
        assert tab.get_by_label("Name of the model").input_value() == "my-pairs"
        tab.get_by_label("Minutes").fill("0.2")
        tab.get_by_text("Settings of the recipe").click()
        tab.get_by_label("One per line").fill(TINY)
        tab.get_by_role("button", name="Start", exact=True).click()
        facts = tab.locator(".run-facts")
        tab.wait_for_selector(".run-facts:has-text('my-pairs is running')")
        tab.wait_for_selector(".run-facts:has-text('update')", timeout=60_000)
        tab.get_by_role("button", name="Stop").click()
        tab.wait_for_selector(".run-facts:has-text('is stopped')", timeout=60_000)
        tab.get_by_role("button", name="Resume").click()
        tab.wait_for_selector(".run-facts:has-text('has finished')", timeout=120_000)
        assert "best chrF++" in facts.inner_text()
        tab.wait_for_selector(".samples tbody tr")
        with urlopen(f"{work_address}/api/models") as response:
            assert "my-pairs" in [model["name"] for model in json.load(response)]
        tab.get_by_role("link", name="Corpus").click()
        tab.wait_for_selector("#model option:has-text('my-pairs')", state="attached")
        tab.get_by_role("link", name="Train").click()
        tab.wait_for_selector(".history .grid")
        tab.get_by_text("Start a training").click()
        check_accessibility(tab)
