"""The page as a file: all in it, nothing asked of anybody, text stays text, weights to 1/255."""

import base64
import hashlib
import itertools
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.look.colours import DARK_PAPER, LEVELS, LIGHT_PAPER, colour
from regard.look.history import Moment
from regard.look.page import frame, history_page, page
from regard.look.table import BLANK, END
from regard.look.trace import AttentionWeights, Candidate, Evidence, Side, Step, Trace, by_words
from regard.look.units import by_units, units
from regard.look.words import Span
from tests.look.traces import arabic, chinese, many_heads, marathi, moments, plain, side, square

HALF = 0.5 / 255 + 1e-6
HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "</script ><b>",
    "<!--<script>",
    "]]></style><svg onload=alert(1)>",
    "&lt;b&gt; &amp; \"quoted\" 'single'",
    "{{script}} {{data}} {{nothing}}",
    "\u2028\u2029\x00\x7f\ufeff",
    "a\ud800b",
    "\\u003c/script\\u003e",
]


class Reader(HTMLParser):
    """The elements of a page as a browser would find them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[int, str] = {}
        self.open = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        self.open = True

    def handle_endtag(self, tag: str) -> None:
        self.open = False

    def handle_data(self, text: str) -> None:
        if self.open:
            here = len(self.tags) - 1
            self.inside[here] = self.inside.get(here, "") + text

    def texts(self, tag: str) -> list[str]:
        return [self.inside.get(number, "") for number, (name, _) in enumerate(self.tags) if name == tag]

    @property
    def content(self) -> Any:
        return json.loads(self.texts("script")[0])


def unpacked(text: str, *shape: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(shape) / 255


EVERY = {"marathi": marathi, "arabic": arabic, "chinese": chinese, "heads": many_heads}


@pytest.mark.parametrize("text", [page([marathi(), arabic()]), history_page(moments(3))], ids=["traces", "history"])
def test_nothing_is_fetched(text: str) -> None:
    reader = Reader(text)
    assert set(re.findall(r"\w+://[^\s\"')]+", text)) == {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert not [name for _, attributes in reader.tags for name in attributes if name in ("src", "href", "action")]
    assert not re.search(r"@import|url\(|innerHTML|insertAdjacentHTML|document\.write|eval\(|fetch\(|\.src\b", text)
    assert not {tag for tag, _ in reader.tags} & {"a", "embed", "iframe", "img", "link", "object"}


def test_only_its_own_script_and_style_may_run() -> None:
    reader = Reader(page([marathi()]))
    (policy,) = [
        each["content"] or "" for _, each in reader.tags if each.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'" and "unsafe" not in policy
    for rule, text in (("script-src", reader.texts("script")[1]), ("style-src", reader.texts("style")[0])):
        assert rules[rule] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("make", EVERY.values(), ids=EVERY)
def test_weights_come_back_to_a_byte(make: Any) -> None:
    trace = make()
    (result,) = Reader(page([trace])).content["traces"][0]
    for packed, attended in zip(result["attentions"], trace.attentions, strict=True):
        rows, columns = trace.sides(attended.name)
        assert (packed["rows"], packed["columns"]) == (
            "target" if rows is trace.target else "source",
            "target" if columns is trace.target else "source",
        )
        for expected, text in (
            (by_words(attended.weights, rows, columns), packed["words"] or packed["units"]),
            (by_units(attended.weights, rows, columns), packed["units"]),
        ):
            np.testing.assert_allclose(unpacked(text, *expected.shape), expected, atol=HALF)


def test_all_that_a_trace_says_is_there() -> None:
    trace = marathi()
    content = Reader(page([trace], "A title & more")).content
    (result,) = content["traces"][0]
    assert result["candidates"] == [[each.text, each.score, each.log_probability] for each in trace.candidates]
    assert result["altered"] == [[each.name, each.text, each.log_probability] for each in trace.altered]
    flattened = [step for unit in result["steps"] for step in unit]
    assert [step[1] for step in flattened] == [round(step.probability, 6) for step in trace.steps]
    assert [[tuple(other) for other in step[2]] for step in flattened] == [
        [(text, round(chance, 6)) for text, chance in step.others] for step in trace.steps
    ]
    for packed, evidence in zip(result["evidence"], trace.evidence, strict=True):
        scale = packed["high"] - packed["low"]
        values = packed["low"] + scale * unpacked(packed["values"], *evidence.values.shape)
        np.testing.assert_allclose(values, evidence.values, atol=scale * HALF)
        assert (packed["name"], packed["agreement"]) == (evidence.name, evidence.agreement)
    lines = content["cards"][result["card"]]["lines"]
    assert ["Scores", "chrF++ 71.3 · BLEU 48.2"] in lines and ["Languages", "en → mr"] in lines
    assert [result[name]["direction"] for name in ("source", "target")] == ["ltr", "ltr"]
    assert Reader(page([arabic()])).content["traces"][0][0]["source"]["direction"] == "rtl"


def test_signs_and_colours_are_those_of_every_view() -> None:
    reader = Reader(page([marathi()]))
    script = reader.texts("script")[1]
    assert f'const END = "{END}";' in script and f'const BLANK = "{BLANK}";' in script
    (style,) = reader.texts("style")
    light, dark = style.split("@media (prefers-color-scheme: dark)")[:2]
    for text, paper, is_dark in ((light, LIGHT_PAPER, False), (dark, DARK_PAPER, True)):
        listed = dict(re.findall(r"--(\w+): ([^;]+);", text))
        assert {name: listed[name] for name in paper._fields} == paper._asdict()
        assert listed["weights"].split() == [colour(number / LEVELS, is_dark) for number in range(LEVELS + 1)]
        assert listed["against"].split()[0] == colour(0, is_dark)


def test_the_card_in_short_lines() -> None:
    trace = marathi()
    card = {"data": {"sha256": "0123456789abcdef" * 4, "lines": 24000}, "scores": {"bleu": 48.2345, "signatures": {}}}
    given_trace = Trace(trace.source, trace.target, trace.attentions, model=card)
    lines = [["Trained on", "sha256 0123456789ab… · lines 24,000"], ["Scores", "BLEU 48.2"]]
    assert Reader(page([given_trace])).content["cards"] == [{"lines": lines, "confusion": None}]


def test_the_title() -> None:
    reader = Reader(page([marathi()], "<b>Alpha & Omega</b>"))
    assert reader.texts("title")[0] == "<b>Alpha & Omega</b>" == reader.texts("h1")[0]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_cannot_become_markup(text: str) -> None:
    trace = plain(text, text)
    trace = Trace(
        trace.source,
        trace.target,
        trace.attentions,
        [Step(0.5, [(text, 0.1)])] * 2,
        [Candidate(text, -1.0, -2.0)],
        {text: text},
        [Evidence(text, np.zeros((len(trace.target.words), len(trace.source.words)), np.float32), 0.0)],
    )
    usual = [tag for tag, _ in Reader(page([marathi()])).tags]
    written = page([trace], text.replace("\ud800", ""))
    written.encode("utf-8")
    reader = Reader(written)
    assert [tag for tag, _ in reader.tags] == usual
    raw = written.split('id="data">')[1].split("</script>\n<script>")[0]
    assert not set(raw) & set("<>&\u2028\u2029")
    result = reader.content["traces"][0][0]
    assert "".join(gap + letters for gap, letters in result["source"]["units"]) == text
    assert result["candidates"][0][0] == text == result["steps"][0][0][2][0][0] == result["evidence"][0]["name"]
    assert reader.content["cards"][0]["lines"] == [[text, text]]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_text_in_any_pieces(data: st.DataObject) -> None:
    text = data.draw(st.text(max_size=30) | st.text("कषतर्ािु́ab 👩‍👧🇮🇳" + "가ᄀ</ \u200d", max_size=20))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)) | {0, len(text)})
    pieces = [Span(text[a:b], a, b) for a, b in itertools.pairwise(cuts)]
    given_side = Side(text, [*pieces, Span("", len(text), len(text))])
    count = len(given_side.pieces)
    weights = np.full((1, 1, count, count), 1 / count, np.float32)
    trace = Trace(given_side, given_side, [AttentionWeights("cross", weights)], [Step(0.5)] * count)
    reader = Reader(page([trace]))
    (result,) = reader.content["traces"][0]
    assert "".join(gap + letters for gap, letters in result["source"]["units"]) == text
    assert len(result["steps"]) == len(result["target"]["units"]) == len(result["target"]["groups"])
    assert all(0 <= group < len(result["source"]["words"]) for group in result["source"]["groups"])
    assert sum(map(len, result["steps"])) == count


@pytest.mark.parametrize(
    ("text", "cuts", "expected"),
    [
        ("क्षमा", [1, 2, 3], [0, 0, 0, 1, 2]),  # joined consonants, then a consonant with its vowel
        ("ab", [1], [0, 1, 2]),
        ("e\u0301t", [1, 2], [0, 0, 1, 2]),
        ("👩\u200d👧!", [1, 2, 3], [0, 0, 0, 1, 2]),
        ("한국", [1], [0, 1, 2]),
    ],
)
def test_no_unit_cuts_a_character(text: str, cuts: list[int], expected: list[int]) -> None:
    bounds = [0, *cuts, len(text)]
    spans = [Span(text[a:b], a, b) for a, b in itertools.pairwise(bounds)]
    assert units(Side(text, [*spans, Span("", len(text), len(text))])) == expected


def test_pieces_without_text_go_with_the_next() -> None:
    """The mark of a blank alone, and a character spelled in bytes, each of which stands for all of it."""
    spans = [Span("a", 0, 1), Span("", 2, 2), Span("é", 2, 3), Span("é", 2, 3), Span("b", 3, 4), Span("", 4, 4)]
    assert units(Side("a éb", spans)) == [0, 1, 1, 1, 2, 3]
    assert units(Side("", [])) == [] and units(Side("", [Span("", 0, 0)])) == [0]


def test_by_units_sums_columns_and_averages_rows() -> None:
    one = Side("e\u0301t", [Span("e", 0, 1), Span("\u0301", 1, 2), Span("t", 2, 3)])
    weights = np.array([[0.1, 0.2, 0.7], [0.3, 0.4, 0.3], [0.0, 0.0, 1.0]], np.float32)
    np.testing.assert_allclose(by_units(weights, one, one), [[0.5, 0.5], [0.0, 1.0]], atol=1e-6)


def test_size() -> None:
    assert len(page([square(60)]).encode()) <= 300_000
    assert len(page([many_heads(6, 8)]).encode()) <= 300_000


def test_numbers_that_json_has_not() -> None:
    trace = marathi()
    steps = [Step(float("nan"), [("x", float("inf"))])] * len(trace.steps)
    strange = Trace(trace.source, trace.target, trace.attentions, steps, [Candidate("x", float("-inf"), 0.0)])
    result = Reader(history_page([Moment(1, 0.1, float("nan"), 3.0, [strange])])).content
    assert result["moments"] == [{"update": 1, "epoch": 0.1, "loss": None, "score": 3.0}]
    assert result["traces"][0][0]["candidates"] == [["x", None, 0.0]]


def test_a_frame_holds_the_page() -> None:
    traces = [marathi(), plain(HOSTILE[0], 'say "x" & <y>')]
    reader = Reader(f"<p>before</p>{frame(traces)}{frame(traces[:1])}<p>after</p>")
    assert [tag for tag, _ in reader.tags] == ["p", "iframe", "iframe", "p"]
    assert [each["srcdoc"] for tag, each in reader.tags if tag == "iframe"] == [page(traces), page(traces[:1])]
    assert traces[0]._repr_html_() == frame(traces[:1])


def test_the_history_holds_every_moment() -> None:
    given_moments = moments(4)
    result = Reader(history_page(given_moments)).content
    assert [each["update"] for each in result["moments"]] == [each.update for each in given_moments]
    for packed, moment in zip(result["traces"], given_moments, strict=True):
        expected = moment.traces[0].by_words()[2]
        words = unpacked(packed[0]["attentions"][0]["words"], *expected.shape)
        np.testing.assert_allclose(words, expected, atol=HALF)


def test_what_cannot_be_shown() -> None:
    with pytest.raises(ValueError, match="traces: expected at least one, got none"):
        page([])
    with pytest.raises(ValueError, match="moments: expected at least one"):
        history_page([])
    with pytest.raises(ValueError, match=r"as many traces at each, and at least one, got \[0, 1\]"):
        history_page([Moment(1, 0.1, 1.0, 1.0, [marathi()]), Moment(2, 0.2, 1.0, 1.0, [])])


def test_next_to_nothing() -> None:
    nothing = Side("", [])
    result = Reader(page([Trace(nothing, nothing, []), Trace(side("x", ["x"]), nothing, [])])).content
    assert result["traces"][0][0]["source"]["units"] == [] and result["traces"][0][1]["attentions"] == []
