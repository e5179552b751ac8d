"""The page in a browser: which way it runs, its colours, small screens and long texts."""

from __future__ import annotations

import time

import numpy as np
import pytest

from regard.look.colours import colour
from regard.look.page import page
from regard.look.table import END
from regard.look.trace import Trace
from tests.look.browser import Open, at, lit, point, summary
from tests.look.traces import arabic, chinese, into_arabic, many_heads, marathi, square


def test_right_to_left(show: Open) -> None:
    tab = show(page([arabic(), into_arabic()]))
    heads = [box["x"] for box in (each.bounding_box() for each in tab.locator(".head").all())]
    assert heads == sorted(heads, reverse=True)
    names = tab.locator(".name").first.bounding_box()
    assert names["x"] > max(heads)  # rows begin where they are read from
    tab.locator(".head").first.hover()
    box = tab.locator(".band.down").bounding_box()
    assert abs(box["x"] - heads[0]) < 2
    point(tab, 0, 0)  # the cell at the far left
    assert summary(tab).startswith(f"The looks at {END} with ")
    tab.locator(".grid").focus()
    for key in ("Home", "ArrowLeft"):
        tab.keyboard.press(key)
    assert lit(tab, ".head") == ["العجوز"]
    assert tab.locator(".pair dd").first.get_attribute("dir") == "rtl"
    tab.locator(".list button").nth(1).click()
    heads = [box["x"] for box in (each.bounding_box() for each in tab.locator(".head").all())]
    assert heads == sorted(heads)
    assert tab.locator(".name > span").first.get_attribute("dir") == "rtl"
    tab.locator("input[value=links]").check(force=True)
    words = [box["x"] for box in (each.bounding_box() for each in tab.locator(".query-tokens .token").all())]
    assert words == sorted(words, reverse=True)


def test_names_stand_above_their_columns(show: Open) -> None:
    """At an angle too, the end token among them, which runs left to right in any text."""
    for trace in (marathi(), arabic()):
        tab = show(page([trace]), viewport={"width": 390, "height": 844})
        assert tab.locator(".grid.tilted").count() == 1
        feet = tab.evaluate(
            """() => [...document.querySelectorAll(".head")].map((head) => {
                 const [box, name] = [head, head.firstChild].map((one) => one.getBoundingClientRect());
                 const right = head.closest("[dir]").dir === "rtl";
                 return (right ? name.right : name.left) - box.left - box.width / 2;
               })"""
        )
        assert max(map(abs, feet)) < 20


CELLS = "[...document.querySelectorAll('.cell')].map((one) => getComputedStyle(one).backgroundColor)"


def test_light_and_dark(show: Open) -> None:
    trace = marathi()
    tab = show(page([trace]), color_scheme="light")
    ground = (
        "() => [document.body, document.querySelector('.cell')].map((one) => getComputedStyle(one).backgroundColor)"
    )
    light = tab.evaluate(ground)
    tab.emulate_media(color_scheme="dark")
    tab.wait_for_function(f"() => !({ground})().some((colour) => {light!r}.includes(colour))")
    dark = tab.evaluate(ground)
    assert brightness(light[0]) > 240 and brightness(dark[0]) < 40
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        tab.wait_for_function(f"() => ({ground})()[0] === {(light if scheme == 'light' else dark)[0]!r}")
        weights = np.rint(trace.by_words()[2].ravel() * 255) / 255
        top = float(tab.locator(".legend .number").last.inner_text())  # the weight in full strength
        wanted = [rgb(colour(weight / top, scheme == "dark")) for weight in weights]  # as in every other view
        # Cells are drawn anew for the other scheme: whoever asks in that moment is told of cells that are gone.
        tab.wait_for_function(f"(wanted) => JSON.stringify({CELLS}) === JSON.stringify(wanted)", arg=wanted)


def rgb(shade: str) -> str:
    """#rrggbb as browsers tell it."""
    return f"rgb({', '.join(str(int(shade[place : place + 2], 16)) for place in (1, 3, 5))})"


def brightness(report: str) -> float:
    """Of rgb(r, g, b), as the eye weighs it."""
    parts = [int(part) for part in report[4:-1].split(", ")]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("trace", [marathi(), chinese(), many_heads(), square(60)], ids=["mr", "zh", "heads", "60"])
def test_a_phone_needs_no_sideways_scrolling(show: Open, trace: Trace) -> None:
    """But inside of the picture."""
    tab = show(page([trace, trace]), viewport={"width": 375, "height": 700}, has_touch=True)
    for view in ("grid", "links"):
        tab.locator(f"input[value={view}]").check(force=True)
        assert tab.evaluate("() => document.documentElement.scrollWidth") <= 375
        tab.locator(".name, .query-tokens .token").nth(1).tap()
        assert summary(tab).startswith(trace.target.words[1].text + " looks at ")


def test_first_paint(show: Open) -> None:
    tab = show(page([square(60)]))
    tab.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
    assert tab.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime") < 1000
    assert tab.locator(".cell").count() == 3600


def test_long_texts_stay_usable(show: Open) -> None:
    trace = square(500)
    begun = time.monotonic()
    tab = show(page([trace]))
    assert tab.locator(".cells canvas").count() == 1
    assert time.monotonic() - begun < 6
    begun = time.monotonic()
    point(tab, 3, 4)
    assert summary(tab) == f"{trace.target.words[3].text} looks at {trace.source.words[4].text} with {at(trace, 3, 4)}"
    assert time.monotonic() - begun < 1
    tab.locator(".grid").focus()
    tab.keyboard.press("End")
    assert trace.source.words[499].text in summary(tab)
    tab.get_by_text("Whole picture").click()
    point(tab, 250, 250)
    assert trace.target.words[250].text in summary(tab) and trace.source.words[250].text in summary(tab)
    begun = time.monotonic()
    tab.locator("input[value=links]").check(force=True)
    assert 0 < tab.locator(".base path").count() <= 1000
    assert time.monotonic() - begun < 6
    tab.locator(".query-tokens .token").nth(2).hover()
    assert summary(tab).startswith(trace.target.words[2].text)


@pytest.mark.parametrize("letters", ["abcdefgh", "ابتثجحخد"], ids=["ltr", "rtl"])
def test_the_canvas_has_a_pixel_for_each_weight(show: Open, letters: str) -> None:
    trace = square(80, letters=letters)
    weights = trace.by_words()[2]
    tab = show(page([trace]), color_scheme="light")
    pixels = tab.evaluate(
        "() => [...document.querySelector('canvas').getContext('2d').getImageData(0, 0, 80, 80).data]"
    )
    darkness = 255 - np.array(pixels).reshape(80, 80, 4)[:, :, :3].mean(2)
    if trace.source.direction == "rtl":
        darkness = darkness[:, ::-1]
    assert np.corrcoef(darkness.ravel(), weights.ravel())[0, 1] > 0.95
    assert (darkness.argmax(1) == weights.argmax(1)).all()
