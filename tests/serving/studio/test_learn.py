"""The view Learn: the numbers of a step as JSON, and the walk in a browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.serving.studio.learn import StepRequest, walked_answer, walked_step
from tests.look.conftest import browser  # noqa: F401, a fixture
from tests.serving.studio.browser import check_accessibility, fits, studio_tab

TEXT = "The boy sees a mango."


@pytest.fixture(scope="module")
def translator(translator_folder: Path) -> regard.Translator:
    return regard.load(translator_folder, "cpu")  # type: ignore[return-value]


def step(translator: regard.Translator, **options: Any) -> dict[str, Any]:
    answer = walked_answer(translator, TEXT)
    return walked_step(translator, StepRequest(text=TEXT, tokens=answer["tokens"], **options))


def test_an_answer(translator: regard.Translator) -> None:
    answer = walked_answer(translator, TEXT)
    assert "".join(answer["source"]["pieces"]) == TEXT.replace(" ", "") and answer["source"]["ended"]
    assert len(answer["tokens"]) == len(answer["target"]["pieces"])
    weights = np.array(answer["weights"])
    assert weights.shape == (1, 1, len(answer["tokens"]), len(answer["source"]["pieces"]))
    assert weights.sum(-1) == pytest.approx(1, abs=1e-3)
    with pytest.raises(ValueError, match="expected a sentence to translate"):
        walked_answer(translator, " ")


def test_the_numbers_of_a_step_fit_together(translator: regard.Translator) -> None:
    answer, result = walked_answer(translator, TEXT), step(translator, step=1)
    own = result["own"]
    query, keys, values = (np.array(own[name]) for name in ("query", "keys", "values"))
    assert own["score"] == "Additive" and own["normalizer"] == "softmax" and own["pattern"] == "full"
    energies = np.tanh(query + keys) @ np.array(own["vector"])
    assert own["scores"] == pytest.approx(energies, abs=2e-3)
    weights = np.exp(own["scores"]) / np.exp(own["scores"]).sum()
    assert own["weights"] == pytest.approx(weights, abs=1e-5)
    assert own["weights"] == pytest.approx(answer["weights"][0][0][1], abs=1e-3)
    assert own["context"] == pytest.approx(weights @ values, abs=1e-3)
    assert result["altered"] is None and result["problem"] is None
    assert sum(each["chosen"] for each in result["next"]) == 1
    assert 0 < sum(each["own"] for each in result["next"]) <= 1


def test_other_parts(translator: regard.Translator) -> None:
    altered = step(translator, step=3, normalizer="sparsemax", pattern="window(1)", temperature=0.5)["altered"]
    assert altered["normalizer"] == "sparsemax" and altered["temperature"] == 0.5
    assert [place for place, each in enumerate(altered["allowed"]) if each] == [2, 3, 4]
    expected = np.maximum(np.array(altered["scores"]) / 0.5 - altered["threshold"], 0) * altered["allowed"]
    assert altered["weights"] == pytest.approx(expected, abs=1e-4)
    cosine = step(translator, score="cosine")["altered"]
    assert cosine["score"] == "Cosine" and np.abs(cosine["scores"]).max() <= 1 + 1e-5
    own = step(translator)["own"]
    product = np.array(own["keys"]) @ np.array(own["query"])
    assert step(translator, score="dot")["altered"]["scores"] == pytest.approx(product, abs=1e-2)


def test_problems_of_a_step(translator: regard.Translator) -> None:
    result = step(translator, pattern="window(2) | globl(0)")
    assert result["altered"] is None and "did you mean 'global'?" in result["problem"]["message"]
    assert (result["problem"]["start"], result["problem"]["end"]) == (12, 17)
    with pytest.raises(ValueError, match="expected a place in the tokens"):
        step(translator, step=900)
    with pytest.raises(ValueError, match="expected one of 1 layers of 1 heads, got 0 and 3"):
        step(translator, head=3)


def walking(tab: Any) -> Any:
    """Wait until a step is shown, and return its heading."""
    heading = tab.locator(".walk > h2")
    tab.wait_for_function("() => document.querySelector('.walk > h2')?.textContent")
    return heading


def weights(tab: Any) -> list[float]:
    return [float(each) for each in tab.locator("td.stage-4 .number").all_inner_texts()]


def test_the_walk(browser: Any, studio_address: str) -> None:  # noqa: F811
    with studio_tab(browser, studio_address, f"#/learn?text={TEXT}") as tab:
        heading = walking(tab)
        assert heading.inner_text() == "1 · Query"
        assert "a vector of 16 numbers" in tab.locator(".sentence").inner_text()
        titles = ["Keys", "Energies", "Pattern", "Weights", "Weighted sum", "Next word"]
        for place, title in enumerate(titles, 2):
            tab.get_by_role("button", name="Next", exact=True).click()
            assert heading.inner_text() == f"{place} · {title}"
            if title == "Energies":
                assert tab.locator(".formula").inner_text() == "e = vᵀ tanh(Wq + Uk)"
                energy = tab.locator("tr.chosen td.stage-2 .number").inner_text()
                assert f"they add up to {energy}" in tab.locator(".vector.stage-2").inner_text()
                check_accessibility(tab)
        assert sum(weights(tab)) == pytest.approx(1, abs=0.01)
        assert tab.locator(".next-pieces li").count() >= 8
        tab.keyboard.press(",")
        assert heading.inner_text() == "6 · Weighted sum"
        tab.get_by_role("button", name="Play").click()
        tab.wait_for_function("() => document.querySelector('.walk > h2').textContent.startsWith('7')")
        strip = tab.get_by_role("img", name=re.compile("^Query: 16 numbers"))
        strip.focus()
        tab.keyboard.press("ArrowRight")
        assert re.match(r"Query, feature 0: −?\d\.\d{3}", tab.locator(".readout").inner_text())
        check_accessibility(tab)


def test_everything_is_drawn_anew(browser: Any, studio_address: str) -> None:  # noqa: F811
    with studio_tab(browser, studio_address, f"#/learn?text={TEXT}") as tab:
        walking(tab)
        tab.get_by_label("Stage").fill("5")
        before = weights(tab)

        def changed(action: Any) -> list[float]:
            text = tab.locator(".attention-table").inner_text()
            action()
            tab.wait_for_function("before => document.querySelector('.attention-table').innerText !== before", arg=text)
            return weights(tab)

        flatter = changed(lambda: tab.get_by_label("Temperature").fill("2"))
        assert max(flatter) < max(before) and sum(flatter) == pytest.approx(1, abs=0.01)
        assert tab.locator("td.stage-4 .bar > b").count() == len(before)  # where the model's own weights end
        hard = changed(lambda: tab.get_by_label("Normalizer").select_option("hard"))
        assert sorted(hard)[-2:] == [0, 1] and "largest energy" in tab.locator(".sentence").inner_text()
        changed(lambda: tab.get_by_label("Pattern").fill("window(1)"))
        assert tab.locator("tr.hidden-key").count() == len(before) - 2
        tab.get_by_label("Pattern").fill("windw(1)")
        tab.get_by_text("did you mean 'window'?").wait_for()
        tab.get_by_role("button", name="As the model has it").click()
        tab.wait_for_function("() => !document.querySelector('.hidden-key')")
        tab.wait_for_function("() => !document.querySelector('td.stage-4 .bar > b')")
        assert weights(tab) == before
        words = tab.locator(".overview .piece")
        words.nth(1).click()
        assert words.nth(1).get_attribute("aria-pressed") == "true"
        tab.locator(".overview .cells").click(position={"x": 5, "y": 5})
        assert words.nth(0).get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(browser: Any, studio_address: str, scheme: str) -> None:  # noqa: F811
    phone = {"viewport": {"width": 390, "height": 844}, "color_scheme": scheme, "has_touch": True}
    with studio_tab(browser, studio_address, f"#/learn?text={TEXT}", **phone) as tab:
        heading = walking(tab)
        for _ in range(6):
            assert fits(tab)
            tab.get_by_role("button", name="Next", exact=True).click()
        assert heading.inner_text() == "7 · Next word" and fits(tab)
        check_accessibility(tab)
