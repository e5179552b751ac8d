"""The view Patterns: drawings, kernels and costs as JSON, and the page in a browser."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

import regard
from regard.core.pattern_text import parse
from regard.serving.studio.patterns import DrawRequest, PatternRequest, at_lengths, drawn, shape_plan
from tests.look.conftest import browser  # noqa: F401, a fixture
from tests.serving.studio.browser import check_accessibility, fits, studio_tab

UNION = "window(4) | global(0) | strided(8)"


def test_a_drawing_is_the_mask() -> None:
    result = drawn(DrawRequest(text=UNION, length=48))
    (group,) = result["groups"]
    assert torch.equal(torch.tensor(group["cells"]) > 0, parse(UNION).mask(48, 48)) and group["side"] == 1
    assert group["density"] == pytest.approx(float(parse(UNION).mask(48, 48).double().mean()))
    assert (result["pattern"], result["problem"], group["heads"], group["counted"]) == (UNION, None, None, 48)
    causal = drawn(DrawRequest(text="window(2)", length=8, causal=True))
    assert causal["pattern"] == "window(2) & causal"
    assert causal["groups"][0]["cells"][3] == [0, 1, 1, 1, 0, 0, 0, 0]


SCORES = {
    "scaled_dot": lambda: regard.ScaledDot(), "dot": lambda: regard.Dot(), "cosine": lambda: regard.Cosine(),
    "general": lambda: regard.General(16, 16), "additive": lambda: regard.Additive(16, 16, 16),
}  # fmt: skip


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("normalizer", ["softmax", "sparsemax", "hard"])
def test_the_plan_of_shapes_is_that_of_tensors(score: Any, normalizer: Any) -> None:
    request = DrawRequest(text=UNION, heads=2, features=16, score=score, normalizer=normalizer)
    for length in (16, 300):
        states = torch.randn(1, 2, length, 16)
        with torch.no_grad():
            real = regard.plan(states, states, states, score=SCORES[score](), pattern=UNION, normalizer=normalizer)
            planned = shape_plan(parse(UNION), length, request)
            assert planned.explain() == real.explain()


def test_a_pattern_for_each_head() -> None:
    result = drawn(DrawRequest(text="per_head(causal, window(2), causal)", heads=3, length=300))
    assert [group["heads"] for group in result["groups"]] == [[0, 2], [1]]
    assert [group["kernel"] for group in result["groups"]] == ["dense", "tiles"]
    few = drawn(DrawRequest(text="per_head(causal, window(2), causal)", heads=3, length=16))
    assert [group["kernel"] for group in few["groups"]] == ["small dense", "small dense"]
    wrong = drawn(DrawRequest(text="per_head(causal, full)", heads=3))
    assert "made for 2 heads" in wrong["problem"]["message"]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("window(4) | globl(0)", "did you mean 'global'?", (12, 17)),
        ("window(4", "expected ','", (8, 9)),
        ("", "expected a pattern", (0, 1)),
        ("random(1000, 1)", "expected at most 256 here", (0, 15)),
        ("grid(1000, 1000).window(none, 3)", "choose a shorter length", (0, 32)),
    ],
)
def test_problems_have_a_place(text: str, message: str, place: tuple[int, int]) -> None:
    problem = drawn(DrawRequest(text=text, length=1_000_000))["problem"]
    assert message in problem["message"] and (problem["start"], problem["end"]) == place


def test_lengths_up_to_a_million() -> None:
    start = time.perf_counter()
    (group,) = drawn(DrawRequest(text=UNION, length=1_000_000))["groups"]
    assert group["kernel"] == "union" and group["counted"] < 3000 and len(group["cells"]) == 96
    assert group["density"] == pytest.approx(0.125, abs=1e-3)
    lengths = at_lengths(PatternRequest(text="window(4)"))["lengths"]
    assert [each["length"] for each in lengths][-1] == 1_000_000
    assert lengths[-1]["flops"] / lengths[-1]["full"] < 0.001
    assert time.perf_counter() - start < 15  # one second on a machine that does nothing else


def test_the_page(browser: Any, studio_address: str) -> None:  # noqa: F811
    with studio_tab(browser, studio_address, "#/patterns") as tab:
        facts = tab.locator(".facts-of-pattern")
        facts.wait_for()
        assert "27.1 % of the pairs" in facts.inner_text() and "dense" in facts.inner_text()
        text = tab.get_by_label("Pattern", exact=True)
        text.fill("window(4) | globl(0)")
        tab.get_by_text("did you mean 'global'?").wait_for()
        assert tab.locator(".problem-place u").inner_text() == "globl" and text.get_attribute("aria-invalid") == "true"
        tab.get_by_role("button", name="window(4)", exact=True).click()
        tab.wait_for_function("() => document.querySelector('figcaption').textContent === 'window(4)'")
        assert tab.locator(".problem").inner_text() == ""
        tab.get_by_role("spinbutton", name="Length").fill("100000")
        tab.get_by_text("estimated from").wait_for()
        assert "tiles" in facts.inner_text() and "length=100000" in tab.url
        tab.locator(".lengths td").first.wait_for()
        tab.locator(".cells").hover(position={"x": 2, "y": 2})
        assert tab.locator("figure .message").inner_text().startswith("Query 0–1,041 to key 0–1,041: may attend:")
        check_accessibility(tab)
        tab.get_by_label("Causal").check()
        tab.wait_for_function("() => document.querySelector('figcaption').textContent === 'window(4) & causal'")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(browser: Any, studio_address: str, scheme: str) -> None:  # noqa: F811
    phone = {"viewport": {"width": 390, "height": 844}, "color_scheme": scheme, "has_touch": True}
    path = "#/patterns?pattern=per_head(causal,full)&heads=2&length=16"
    with studio_tab(browser, studio_address, path, **phone) as tab:
        tab.locator(".lengths td").first.wait_for()
        assert tab.locator(".drawing").count() == 2 and fits(tab)
        check_accessibility(tab)
