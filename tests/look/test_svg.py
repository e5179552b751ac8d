"""SVG: well-formed whatever the text, every label and weight in its place, nothing beyond the edge."""

import math
import re
import shutil
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.look.colours import DARK_PAPER, LEVELS, colour, ink, level
from regard.look.layout import (
    LARGE_TABLE,
    MAX_LINKS_PER_ROW,
    Cell,
    Picture,
    TextLabel,
    grid_picture,
    links_picture,
    text_width,
)
from regard.look.svg import render
from regard.look.table import Table

NAMES = "{http://www.w3.org/2000/svg}"
FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""what XML 1.0 does not allow"""
DIRECTIONS = st.sampled_from(["ltr", "rtl"])
LABELS = st.lists(st.text(max_size=8) | st.sampled_from(["<b>", "&amp;", "]]>", "\x00\x1b", "\ud800", '"', "\r\n"]))


def made(rows: list[str], columns: list[str], **others: object) -> Table:
    weights = np.random.default_rng(0).dirichlet([0.3] * max(1, len(columns)), len(rows)).astype(np.float32)
    return Table(rows, columns, weights[:, : len(columns)], **others)  # type: ignore[arg-type]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    return made(
        draw(LABELS),
        draw(LABELS),
        row_direction=draw(DIRECTIONS),
        column_direction=draw(DIRECTIONS),
        title=draw(LABELS),
        footnotes=draw(LABELS),
    )


def grid(table: Table) -> str:
    return render(grid_picture(table))


def links(table: Table, floor: float = 0.05) -> str:
    return render(links_picture(table, floor))


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg.encode("utf-8"))


def cells(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [group for group in root.iter(f"{NAMES}g") if group.find(f"{NAMES}title") is not None]


def labels(root: ElementTree.Element) -> list[str]:
    """As they are, where they are cut from their tooltips."""
    result = [text for text in root.iter(f"{NAMES}text") if text.get("class") == "text"]
    return [text.findtext(f"{NAMES}title") or "".join(text.itertext()) for text in result]


def box(cell: ElementTree.Element) -> tuple[float, float]:
    rect = cell.find(f"{NAMES}rect")
    assert rect is not None
    return float(rect.get("x", "")), float(rect.get("y", ""))


def same(shown: str, meant: str) -> bool:
    """All that XML allows is there, but for control characters, which have pictures."""
    return len(shown) == len(meant) and all(
        a == b or ord(b) < 0x20 or 0x7F <= ord(b) <= 0x9F or FORBIDDEN.match(b) or ord(b) & 0xFFFE == 0xFFFE
        for a, b in zip(shown, meant, strict=True)
    )


# Any text


@given(tables())
@settings(deadline=None)
def test_any_text_makes_a_grid(given: Table) -> None:
    root = parsed(grid(given))
    assert len(cells(root)) == len(given.rows) * len(given.columns)
    shown = labels(root)
    assert len(shown) == len(given.rows) + len(given.columns)
    assert all(map(same, shown, [*given.rows, *given.columns]))


@given(tables())
@settings(deadline=None)
def test_any_text_makes_links(given: Table) -> None:
    root = parsed(links(given, floor=0))
    assert len(list(root.iter(f"{NAMES}path"))) == int((given.weights > 0).sum())
    assert all(map(same, labels(root), [*given.columns, *given.rows]))


@given(tables(), st.sampled_from([grid_picture, links_picture]))
@settings(deadline=None)
def test_nothing_beyond_the_edge(given: Table, draw: object) -> None:
    picture: Picture = draw(given)  # type: ignore[operator]
    for item in picture.items:
        if isinstance(item, TextLabel):
            for x, y in corners(item):
                assert -0.5 <= x <= picture.width + 0.5 and -0.5 <= y <= picture.height + 0.5
        elif isinstance(item, Cell):
            assert 0 <= item.x <= item.x + item.width <= picture.width
            assert 0 <= item.y <= item.y + item.height <= picture.height


def corners(words: TextLabel) -> list[tuple[float, float]]:
    """Of the words as wide as they are reckoned to be."""
    width = text_width(words.text, words.size, math.inf if words.faint else 24)
    first = {"left": 0.0, "middle": -width / 2, "right": -width}[words.edge]
    turn = math.radians(words.turn)
    return [
        (words.x + x * math.cos(turn) - y * math.sin(turn), words.y + x * math.sin(turn) + y * math.cos(turn))
        for x in (first, first + width)
        for y in (-words.size / 2, words.size / 2)
    ]


def test_markup_in_the_text_stays_text() -> None:
    for svg in (grid, links):
        result = svg(made(["<script>alert(1)</script>"], ['"><image href="x"/>'], footnotes=["<b>&"]))
        assert not {element.tag for element in parsed(result).iter()} & {f"{NAMES}script", f"{NAMES}image", f"{NAMES}b"}
        assert "<script" not in result and "<image" not in result


# What is where

SENTENCES = made(["मुलगा", "आहे", "."], ["He", "is", "a", "boy"], title=["cross attention"], footnotes=["agreement: 1"])


def test_cells_hold_the_weights() -> None:
    root = parsed(grid(SENTENCES))
    shades = {(row, column): level(float(SENTENCES.weights[row, column])) for row in range(3) for column in range(4)}
    result = sorted(cells(root), key=lambda cell: box(cell)[::-1])
    for (row, column), cell in zip(sorted(shades), result, strict=True):
        weight = f"{SENTENCES.weights[row, column]:.2f}"
        assert cell.get("class") == f"s{shades[row, column]}"
        tooltip = cell.findtext(f"{NAMES}title") or ""
        assert SENTENCES.rows[row] in tooltip and SENTENCES.columns[column] in tooltip and tooltip.endswith(weight)
        assert cell.findtext(f"{NAMES}text") == (weight if weight != "0.00" else None)


def test_title_and_footnotes_stand_there() -> None:
    for svg in (grid, links):
        faint = [text.text for text in parsed(svg(SENTENCES)).iter(f"{NAMES}text") if text.get("class") == "faint"]
        assert "cross attention" in faint and "agreement: 1" in faint


def test_it_can_be_heard() -> None:
    root = parsed(grid(SENTENCES))
    assert root.get("role") == "img"
    assert root.get("aria-label") == "cross attention, of: मुलगा आहे .; to: He is a boy"


def test_light_and_dark() -> None:
    style = parsed(grid(SENTENCES)).findtext(f"{NAMES}style") or ""
    light, dark = style.split("@media(prefers-color-scheme:dark)")
    for cell in cells(parsed(grid(SENTENCES))):
        name = cell.get("class", "")
        for part, night in ((light, False), (dark, True)):
            shade = colour(int(name[1:]) / LEVELS, night)
            assert f".{name}{{fill:{shade}}}" in part and f".{name} text{{fill:{ink(shade)}}}" in part


def test_from_right_to_left() -> None:
    """Columns run from the right, and the labels of rows stand where reading begins."""
    words = ["قرأ", "الطالب", "الكتاب"]
    for direction, sign in (("ltr", 1), ("rtl", -1)):
        picture = grid_picture(made(["a", "b"], words, column_direction=direction))
        heads = [item for item in picture.items if isinstance(item, TextLabel) and item.text in words]
        assert [item.text for item in sorted(heads, key=lambda item: sign * item.x)] == words
        row = next(item for item in picture.items if isinstance(item, TextLabel) and item.text == "a")
        assert all(sign * row.x < sign * head.x for head in heads)
        first, last = (
            next(item for item in picture.items if isinstance(item, Cell) and f"{word}\u2069:" in item.tooltip)
            for word in (words[0], words[-1])
        )
        assert sign * first.x < sign * last.x


@pytest.mark.parametrize("column_direction", ["ltr", "rtl"])
@pytest.mark.parametrize("row_direction", ["ltr", "rtl"])
def test_links_run_as_their_texts(row_direction: str, column_direction: str) -> None:
    given = made(["a", "b"], ["c", "d", "e"], row_direction=row_direction, column_direction=column_direction)
    places = {item.text: item.x for item in links_picture(given).items if isinstance(item, TextLabel)}
    assert (places["a"] < places["b"]) == (row_direction == "ltr")
    assert (places["c"] < places["d"] < places["e"]) == (column_direction == "ltr")


def test_text_that_runs_from_the_right_is_told_so() -> None:
    """There, the start of a text is its right end."""
    root = parsed(grid(made(["قرأ"], ["read"], row_direction="rtl")))
    result = {text.text: text for text in root.iter(f"{NAMES}text")}
    assert result["قرأ"].get("direction") == "rtl" and result["قرأ"].get("text-anchor") == "start"
    assert result["read"].get("direction") is None


def test_links_below_the_floor_are_left_out() -> None:
    given = Table(["a"], ["b", "c", "d"], np.array([[0.8, 0.15, 0.05]], np.float32))
    for floor, count in ((0, 3), (0.1, 2), (0.5, 1), (1, 0)):
        paths = list(parsed(links(given, floor)).iter(f"{NAMES}path"))
        assert len(paths) == count
        wider = [(float(path.get("stroke-width", "")), float(path.get("stroke-opacity", ""))) for path in paths]
        assert wider == sorted(wider) and len(set(wider)) == count  # the strongest last, on top
    with pytest.raises(ValueError, match="floor: expected a fraction from 0 to 1, got 2"):
        links(given, 2)


# Long labels and many


def test_a_long_label_is_cut_and_whole_in_its_tooltip() -> None:
    word = "विद्यार्थ्यांच्या" * 9
    for svg in (grid, links):
        root = parsed(svg(made([word], ["b"])))
        text = next(text for text in root.iter(f"{NAMES}text") if text.find(f"{NAMES}title") is not None)
        title = text.find(f"{NAMES}title")
        assert title is not None and title.text == word
        assert word.startswith((title.tail or "").removesuffix("…")) and len(title.tail or "") < len(word) / 2


def test_heads_are_slanted_where_they_would_not_fit() -> None:
    def turns(words: list[str]) -> set[int]:
        return {item.turn for item in grid_picture(made(["a"], words)).items if isinstance(item, TextLabel)}

    assert turns(["the", "boy"]) == {0}
    assert len(turns(["the", "internationalization"])) == 2


@pytest.mark.parametrize("count", [30, 60, 100, 400])
@pytest.mark.parametrize("draw", [grid_picture, links_picture])
def test_many_words_stay_readable(count: int, draw: object) -> None:
    words = [f"word{number}" for number in range(count)]
    picture: Picture = draw(made(words, words))  # type: ignore[operator]
    assert picture.width < 1400 and picture.height < 1600
    shown = [item for item in picture.items if isinstance(item, TextLabel) and not item.faint]
    assert all(item.size >= 8 for item in shown)
    for first, second in pairwise(shown):
        turn = math.radians(first.turn)
        apart = (second.x - first.x) * math.sin(turn), (second.y - first.y) * math.cos(turn)
        # Lines of text lie at least their size apart; level ones may instead stand beside each other.
        next_to = first.turn == 0 and second.x - first.x >= text_width(first.text, first.size)
        assert next_to or math.hypot(*apart) >= first.size or first.turn != second.turn or first.edge != second.edge


def test_only_the_strongest_of_many() -> None:
    words = [f"word{number}" for number in range(400)]
    given = made(words, words)
    curves = list(parsed(links(given, 0)).iter(f"{NAMES}path"))
    assert len(curves) <= MAX_LINKS_PER_ROW * len(words)
    assert all(float(curve.get("stroke-width", "")) < 1080 / 400 for curve in curves)  # no wider than words are apart
    shown = cells(parsed(grid(given)))
    assert len(shown) <= LARGE_TABLE * len(words) and not any(cell.get("class") == "s0" for cell in shown)
    assert len(grid(given)) < 3_000_000


# In a browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ENGLISH, MARATHI, ARABIC, CHINESE = (
    text.split()
    for text in (
        "The students ' books are in the old library near the river .",
        "विद्यार्थ्यांच्या पुस्तकांची दुकाने नदीजवळच्या जुन्या वाचनालयात आहेत . तो चांगला मुलगा आहे",
        "قرأ الطالب كتابًا جديدًا في مكتبة الجامعة الكبيرة أمس .",
        "这 家 老 图书馆 里 有 很多 学生 的 书 。",
    )
)
REAL = {
    "English": made(ENGLISH, ENGLISH, title=["encoder attention"]),
    "Marathi": made(MARATHI, ENGLISH, footnotes=["agreement with leave one out: 0.71"]),
    "from Marathi": made(ENGLISH, MARATHI),
    "Arabic": made(MARATHI, ARABIC, column_direction="rtl"),
    "to Arabic": made(ARABIC, ENGLISH, row_direction="rtl"),
    "Chinese": made(CHINESE, ENGLISH),
    "small": made(["तो", "आला"], ["He", "came"]),
    "large": made(MARATHI * 5, ENGLISH * 5),
}
MEASURED = """() => [...document.querySelectorAll("text.text, text.faint")].map(each => {
    const box = each.getBoundingClientRect();
    return [box.left, box.top, box.right, box.bottom, each.hasAttribute("transform"), each.textContent];
})"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: apt-get install chromium")
def test_in_a_browser_nothing_is_cut_and_nothing_overlaps(tmp_path: Path) -> None:
    """There, with real letters, of which we only reckoned the widths."""
    drawing = pytest.importorskip("playwright.sync_api", reason="needs playwright here")
    with drawing.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for (name, given), svg in ((each, svg) for each in REAL.items() for svg in (grid, links)):
            (tmp_path / "picture.svg").write_text(svg(given), encoding="utf-8")
            page = browser.new_page(viewport={"width": 1600, "height": 1600}, color_scheme="dark")
            page.goto((tmp_path / "picture.svg").as_uri())
            root = parsed(svg(given))
            width, height = float(root.get("width", "")), float(root.get("height", ""))
            result = page.evaluate(MEASURED)
            assert all(x >= 0 and y >= 0 and right <= width and end <= height for x, y, right, end, *_ in result), name
            level = [box for box in result if not box[4]]
            for one, other in combinations(level, 2):
                across = min(one[2], other[2]) - max(one[0], other[0])
                down = min(one[3], other[3]) - max(one[1], other[1])
                # Boxes are as high as letters may be at most, so lines of text may share some of them.
                assert across <= 1 or down <= 10, (name, svg.__name__, one[5], other[5])
            ground = page.evaluate("getComputedStyle(document.querySelector('.ground')).fill")
            assert ground == "rgb({}, {}, {})".format(*(int(DARK_PAPER.ground[at : at + 2], 16) for at in (1, 3, 5)))
            page.close()
        browser.close()
