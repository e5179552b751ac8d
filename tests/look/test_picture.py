"""Weights over a picture: the picture is in it, what got no weight fades, and nothing is fetched."""

import base64
import io
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from regard.look.colours import level
from regard.look.picture import VEIL_OPACITY, overlay, page, patches, png, save
from regard.look.table import Table, table
from regard.look.trace import AttentionWeights, Side, Trace
from regard.look.words import Span
from tests.look.browser import Open

NAMES = "{http://www.w3.org/2000/svg}"


def seen(rows: int = 2, height: int = 3, width: int = 4) -> Table:
    weights = np.random.default_rng(0).dirichlet([0.5] * height * width, rows).astype(np.float32)
    names = [span.text for span in patches(height, width).pieces]
    return Table([f"word{row}" for row in range(rows)], names, weights, title=("cross attention",))


def picture() -> Any:
    return np.random.default_rng(1).integers(0, 256, (6, 8, 3)).astype(np.uint8)


def test_patches_have_the_names_of_squares() -> None:
    side = patches(2, 3)
    assert side.text == "a1 b1 c1 a2 b2 c2"
    assert [word.text for word in side.words] == ["a1", "b1", "c1", "a2", "b2", "c2"]
    assert side.groups == list(range(6))
    wider = [piece.text for piece in patches(1, 30).pieces]
    assert wider[25:28] == ["z1", "aa1", "ab1"] and len({*wider}) == 30


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (1, 1)])
def test_png_is_read_back(shape: tuple[int, ...]) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(2).integers(0, 256, shape).astype(np.uint8)
    assert np.array_equal(np.asarray(image.open(io.BytesIO(png(pixels)))), pixels)


def test_the_picture_is_in_it_for_everyone_who_looks() -> None:
    root = ElementTree.fromstring(overlay(seen(), picture(), 3, 4))
    images = list(root.iter(f"{NAMES}image"))
    assert len(images) == 3  # as it is, and for two words
    uri = images[0].get("href", "")
    assert base64.b64decode(uri.removeprefix("data:image/png;base64,")) == png(picture())
    texts = ["".join(text.itertext()) for text in root.iter(f"{NAMES}text")]
    assert texts[:2] == ["cross attention", "the picture"] and "word0" in texts and "word1" in texts


def test_veils_and_shades_say_the_weights() -> None:
    shown = seen()
    root = ElementTree.fromstring(overlay(shown, picture(), 3, 4))
    most = shown.weights.max()
    veils = [float(rect.get("fill-opacity", "")) for rect in root.iter(f"{NAMES}rect") if rect.get("fill-opacity")]
    expected = [VEIL_OPACITY * (1 - weight / most) for weight in shown.weights.flatten()]
    np.testing.assert_allclose(veils, [veil for veil in expected if veil >= 0.01], atol=0.006)
    cells = [group for group in root.iter(f"{NAMES}g") if group.find(f"{NAMES}title") is not None]
    assert [group.get("class") for group in cells] == [f"s{level(w / most)}" for w in shown.weights.flatten()]
    assert cells[0].findtext(f"{NAMES}title") == f"word0 ← a1: {shown.weights[0, 0]:.2f}"


def test_nothing_lies_beyond_the_edge() -> None:
    for rows in (1, 5, 6, 13):
        root = ElementTree.fromstring(overlay(seen(rows), picture(), 3, 4))
        wider, high = float(root.get("width", "")), float(root.get("height", ""))
        for kind in ("rect", "image"):
            for each in root.iter(NAMES + kind):
                x, y = float(each.get("x", 0)), float(each.get("y", 0))
                assert (
                    x + float(each.get("width", "")) <= wider + 0.2 and y + float(each.get("height", "")) <= high + 0.2
                )


def test_a_trace_of_a_picture_is_a_trace_like_any_other() -> None:
    target = Side("a cat", [Span("a", 0, 1), Span("cat", 2, 5), Span("", 5, 5)])
    weights = np.random.default_rng(3).dirichlet([1] * 12, (2, 1, 3)).astype(np.float32)
    trace = Trace(patches(3, 4), target, [AttentionWeights("cross", weights)])
    again = Trace.from_dict(trace.as_dict())
    shown = table(again)
    assert list(shown.columns) == [piece.text for piece in patches(3, 4).pieces]
    np.testing.assert_allclose(shown.weights, weights.mean((0, 1)), atol=1e-4)
    assert "cat" in overlay(shown, picture(), 3, 4)


@pytest.mark.parametrize("label", ["<b>&amp;", "\x00\x1b", "\ud800", "नमस्ते", "مرحبا"])
def test_any_label(label: str) -> None:
    shown = seen(1)
    ElementTree.fromstring(overlay(Table([label], shown.columns, shown.weights), picture(), 3, 4).encode("utf-8"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_needs_nothing_else(show: Open, scheme: str) -> None:
    tab = show(page([overlay(seen(), picture(), 3, 4)] * 2), color_scheme=scheme)
    assert tab.locator("svg").count() == 2
    ground = tab.evaluate("() => getComputedStyle(document.querySelector('svg .ground')).fill")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(19, 23, 29)"}[scheme]
    loaded = "() => [...document.querySelectorAll('image')].every((each) => each.getBBox().width > 0)"
    assert tab.evaluate(loaded)


def test_saves(tmp_path: Any) -> None:
    save([(seen(), picture())], 3, 4, tmp_path / "one.svg")
    save([(seen(), picture())] * 2, 3, 4, tmp_path / "two.html")
    assert ElementTree.parse(tmp_path / "one.svg")
    text = (tmp_path / "two.html").read_text(encoding="utf-8")
    assert len(re.findall("<svg ", text)) == 2
    with pytest.raises(ValueError, match=r"ends in .html, or for one picture in .svg, got 'x.svg'"):
        save([(seen(), picture())] * 2, 3, 4, tmp_path / "x.svg")


def test_numbers_from_0_to_1_and_shades_of_grey() -> None:
    grey = np.array([[0.0, 0.5], [1.0, 2.0]])
    root = ElementTree.fromstring(overlay(seen(1, 2, 2), grey, 2, 2))
    uri = next(root.iter(f"{NAMES}image")).get("href", "")
    assert base64.b64decode(uri.partition(",")[2]) == png(np.array([[0, 128], [255, 255]], np.uint8))


def test_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="a column for each of 3 × 3 patches, got 12"):
        overlay(seen(), picture(), 3, 3)
    with pytest.raises(ValueError, match=r"picture: expected \[h, w\] or \[h, w, 3\], got \[6, 8, 4\]"):
        overlay(seen(), np.zeros((6, 8, 4)), 3, 4)
