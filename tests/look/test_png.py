"""PNG and PDF: the weights in their colours, every character from a font that has it."""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", "3.11", reason="needs matplotlib 3.11 or newer here")

import matplotlib
from matplotlib.image import imread
from matplotlib.text import Text

from regard.look import png
from regard.look.colours import LEVELS, colour, level
from regard.look.layout import Cell, grid_picture, links_picture
from regard.look.table import END, Table

ENGLISH = ["He", "is", "a", "good", "boy", ".", END]
MARATHI = ["तो", "विद्यार्थ्यांच्या", "चांगला", "मुलगा", "आहे", ".", END]
ARABIC = ["قرأ", "الطالب", "الكتاب", "،", END]
CHINESE = ["他", "是", "一个", "好", "男孩", "。", END]


def made(rows: list[str], columns: list[str], **others: object) -> Table:
    weights = np.random.default_rng(0).dirichlet([0.3] * len(columns), len(rows)).astype(np.float32)
    message = {"title": ["cross attention"], "footnotes": ["agreement: 0.71"], **others}
    return Table(rows, columns, weights, **message)  # type: ignore[arg-type]


def save(table: Table, path: Path, view: str = "grid") -> None:
    """Write the picture of a table, as `views.save` does."""
    png.save_picture(grid_picture(table) if view == "grid" else links_picture(table), path)


def need(table: Table) -> None:
    try:
        png.Families().require("".join([*table.rows, *table.columns]))
    except ValueError as error:
        pytest.skip(f"needs fonts here: {error}")


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    """Matplotlib warns of a character that its fonts have not."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


PAIRS = {
    "English": made(ENGLISH, ENGLISH),
    "Marathi": made(MARATHI, ENGLISH),
    "Arabic": made(ENGLISH, ARABIC, column_direction="rtl"),
    "to Arabic": made(ARABIC, ENGLISH, row_direction="rtl"),
    "Chinese": made(CHINESE, MARATHI),
    "mixed": made(["iPhone手机", "कॉफी-café"], ["$x$", "a_b^c"]),
}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("view", ["grid", "links"])
def test_pictures(pair: str, view: str, tmp_path: Path) -> None:
    need(PAIRS[pair])
    for ending, start in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")):
        save(PAIRS[pair], tmp_path / f"picture{ending}", view)
        assert (tmp_path / f"picture{ending}").read_bytes().startswith(start)


@pytest.mark.parametrize("pair", ["English", "Arabic"])
def test_cells_have_the_colours_of_their_weights(pair: str, tmp_path: Path) -> None:
    """Read from the picture, where the cells of the SVG stand: columns of Arabic from right to left."""
    table = PAIRS[pair]
    need(table)
    save(table, tmp_path / "picture.png")
    picture = grid_picture(table)
    pixels = imread(tmp_path / "picture.png")
    assert pixels.shape[:2] == pytest.approx((picture.height * png.PIXEL_RATIO, picture.width * png.PIXEL_RATIO), abs=1)
    result = [item for item in picture.items if isinstance(item, Cell) and item.tooltip]
    assert len(result) == table.weights.size
    for cell in result:
        x, y = (round(place * png.PIXEL_RATIO) + 4 for place in (cell.x, cell.y))  # a corner, where no number stands
        seen = "#" + "".join(f"{round(float(value) * 255):02x}" for value in pixels[y, x, :3])
        assert seen == colour(cell.level / LEVELS)
    columns = sorted({cell.x for cell in result}, reverse=table.column_direction == "rtl")
    for column, x in enumerate(columns):
        inside = [cell.level for cell in sorted(result, key=lambda cell: cell.y) if cell.x == x]
        assert inside == [level(float(weight)) for weight in table.weights[:, column]]


@pytest.mark.parametrize("pair", PAIRS)
def test_text_is_handed_over_as_it_is(pair: str) -> None:
    need(PAIRS[pair])
    for picture in (grid_picture(PAIRS[pair]), links_picture(PAIRS[pair])):
        texts = [text.get_text().replace(png.END_FALLBACK, END) for text in png.figure(picture).findobj(Text)]
        assert {*PAIRS[pair].rows, *PAIRS[pair].columns, "cross attention", "agreement: 0.71"} <= set(texts)


@pytest.mark.parametrize(("joined", "apart"), [("क्ष", ["क", "ष"]), ("ببب", ["ب", "ب", "ب"])])
def test_letters_are_joined(joined: str, apart: list[str]) -> None:
    """Joined letters are narrower than the same letters by themselves."""
    table = made([joined], ["".join(apart)])
    need(table)

    def width(text: str) -> float:
        figure = png.figure(grid_picture(made([text], ["x"])))
        figure.set_dpi(600)
        result = next(each for each in figure.findobj(Text) if each.get_text() == text)
        return float(result.get_window_extent().width)

    assert width(joined) < 0.95 * sum(map(width, apart))


# Fonts


@pytest.fixture
def few_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(png, "installed", lambda: ["DejaVu Sans"])
    monkeypatch.setattr(png, "refresh", lambda: None)


@pytest.mark.parametrize(
    ("words", "scripts", "packages"),
    [
        (["मुलगा"], "Devanagari", "fonts-noto-core"),
        (["男孩"], "CJK", "fonts-noto-cjk"),
        (["ひと"], "Hiragana", "fonts-noto-cjk"),
        (["मुलगा", "男孩", "한국"], "CJK, Devanagari, Hangul", "fonts-noto-cjk fonts-noto-core"),
        (["🫠"], "symbols", "fonts-symbola"),
    ],
)
@pytest.mark.usefixtures("few_fonts")
def test_a_font_that_is_missing(words: list[str], scripts: str, packages: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"\({scripts}\); on Debian: apt install {packages}$"):
        save(made(words, ["boy"]), tmp_path / "picture.png")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("few_fonts")
def test_the_end_token_needs_no_font_of_its_own(tmp_path: Path) -> None:
    assert ord(END) not in png.characters("DejaVu Sans")
    save(made(["boy", END], [END]), tmp_path / "picture.png")
    texts = [text.get_text() for text in png.figure(grid_picture(made(["boy", END], [END]))).findobj(Text)]
    assert texts.count(png.END_FALLBACK) == 2 and END not in texts


@pytest.mark.parametrize("word", ["मागतोrुु", "rु", "xা", "é", "ก็b"])
def test_marks_after_a_letter_of_another_script(word: str, tmp_path: Path) -> None:
    """An undertrained model outputs such words; no font has both characters in one cluster."""
    table = made([word, END], ["a", "b"])
    need(table)
    save(table, tmp_path / "mixed.png")
    assert imread(tmp_path / "mixed.png").size


def test_fonts_installed_since_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Matplotlib keeps its list of fonts: what we tell people to install may not be on it yet."""
    table = PAIRS["Marathi"]
    need(table)
    known = png.installed
    seen: list[str] = []
    monkeypatch.setattr(png, "installed", lambda: known() if seen else ["DejaVu Sans"])
    monkeypatch.setattr(png, "refresh", lambda: seen.append("refreshed"))
    save(table, tmp_path / "picture.png")
    assert seen == ["refreshed"]


def test_fonts_that_show_boxes_are_not_used() -> None:
    names = png.installed()
    assert "DejaVu Sans" in names
    assert not [name for name in names if "resort" in name.lower() or name.startswith("cm")]


def test_a_family_that_has_all_is_used_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(png, "installed", lambda: ["first", "second", "third"])
    has = {"first": "ab", "second": "c", "third": "abcd"}
    monkeypatch.setattr(png, "characters", lambda name: set(map(ord, has[name])))
    families = png.Families()
    assert families.covering("ab") == ["first"]
    assert families.covering("a b\u200dc") == ["third"]
    has["third"] = "d"
    assert png.Families().covering("acd") == ["first", "second", "third"]
    assert png.Families().covering("ad") == ["first", "third"]


# Mistakes


def test_names(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path: expected a name that ends in \.png or \.pdf, got 'picture\.jpg'"):
        save(PAIRS["English"], tmp_path / "picture.jpg")


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = r"older ones do not shape Devanagari and Arabic; pip install 'matplotlib>=3\.11'$"
    with pytest.raises(ValueError, match=message):
        save(PAIRS["English"], tmp_path / "picture.png")


def test_with_an_older_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(matplotlib, "__version_info__", (3, 10, 8), raising=False)
    monkeypatch.setattr(matplotlib, "__version__", "3.10.8", raising=False)
    with pytest.raises(ValueError, match=r"pip install 'matplotlib>=3\.11'; got matplotlib 3\.10\.8"):
        save(PAIRS["English"], tmp_path / "picture.png")
