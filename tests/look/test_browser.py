"""The page in a browser: what lights up, what moves, and that nothing leaves the page."""

from __future__ import annotations

from dataclasses import replace

from regard.look.history import Moment
from regard.look.page import history_page, page
from regard.look.table import END
from regard.look.trace import Trace
from tests.look.browser import Open, at, lit, lit_heads, point, report, summary
from tests.look.traces import MARATHI, arabic, chinese, label, many_heads, marathi, moments, plain


def test_pointing_at_a_cell(show: Open) -> None:
    trace = marathi()
    tab = show(page([trace]))
    assert "Point at a word" in summary(tab)
    point(tab, 1, 2)
    assert summary(tab) == f"माणूस looks at man with {at(trace, 1, 2)}"
    assert (lit(tab, ".name"), lit(tab, ".head")) == (["माणूस"], ["man"])
    assert lit(tab, ".pair .part") == ["man", "माणूस"]
    assert tab.locator(".band:visible").count() == 2
    tab.mouse.move(1, 1)
    assert "Point at a word" in summary(tab) and lit(tab, ".name") == []


def test_pointing_at_words(show: Open) -> None:
    trace = marathi()
    weights = trace.by_words()[2]
    tab = show(page([trace]))
    tab.locator(".name", has_text="वर्तमानपत्र").hover()
    best = weights[3].argmax()
    assert summary(tab).startswith(f"वर्तमानपत्र looks at {trace.source.words[best].text} {report(weights[3, best])}")
    assert lit_heads(tab) == [
        word.text or END for word, weight in zip(trace.source.words, weights[3], strict=True) if weight >= 0.04
    ]
    tab.locator(".head", has_text="garden").hover()
    assert summary(tab).startswith("garden is looked at by बागेत ")
    tab.locator(".pair dd").nth(1).locator("[data-word='4']").hover()
    assert summary(tab).startswith("वाचत looks at reading ")


def test_the_links(show: Open) -> None:
    trace = marathi()
    tab = show(page([trace]))
    tab.locator("input[value=links]").check(force=True)
    assert tab.locator(".links .token").count() == len(trace.source.words) + len(trace.target.words)
    assert tab.locator(".base path").count() >= len(trace.target.words)
    assert tab.locator(".near path").count() == 0
    tab.locator(".query-tokens .token", has_text="माणूस").hover()
    assert summary(tab).startswith("माणूस looks at man ")
    assert tab.locator(".near path").count() > 1
    assert tab.locator(".key-tokens .token", has_text="man").get_attribute("data-weight") == at(trace, 1, 2)
    tab.locator(".links").focus()
    tab.keyboard.press("Home")
    assert lit(tab, ".query-tokens .token") == ["म्हातारा"]
    tab.keyboard.press("ArrowRight")
    assert lit(tab, ".query-tokens .token") == ["माणूस"]
    tab.keyboard.press("ArrowUp")
    assert lit(tab, ".key-tokens .token") == ["man"] and summary(tab).startswith("man is looked at by माणूस")


def test_curves_end_at_their_words(show: Open) -> None:
    """At any width, in both layouts."""
    for width in (1280, 390):
        tab = show(page([marathi()]), viewport={"width": width, "height": 800})
        tab.locator("input[value=links]").check(force=True)
        gaps = tab.evaluate(
            """() => [...document.querySelectorAll(".base path")].map((path) => {
                 const flat = document.querySelector(".flat");
                 const words = document.querySelectorAll(".key-tokens .token");
                 const word = words[path.dataset.column].getBoundingClientRect();
                 const svg = path.ownerSVGElement.getBoundingClientRect();
                 const start = path.getPointAtLength(0);
                 return flat ? Math.abs(svg.x + start.x - word.x - word.width / 2)
                             : Math.abs(svg.y + start.y - word.y - word.height / 2);
               })"""
        )
        assert gaps and max(gaps) < 2


def test_arrow_keys(show: Open) -> None:
    trace = marathi()
    tab = show(page([trace]))
    tab.locator(".grid").focus()
    for key in ("Home", "ArrowRight", "ArrowDown", "ArrowRight"):
        tab.keyboard.press(key)
    assert summary(tab) == f"माणूस looks at man with {at(trace, 1, 2)}"
    for key in ("ArrowLeft", "ArrowLeft", "ArrowLeft"):
        tab.keyboard.press(key)
    assert summary(tab).startswith("माणूस looks at man ") and lit(tab, ".head") == []
    tab.keyboard.press("End")
    tab.keyboard.press("ArrowUp")
    tab.keyboard.press("ArrowUp")
    assert summary(tab).startswith(f"{END} is looked at by ")


def test_all_can_be_reached_by_tab(show: Open) -> None:
    tab = show(page([marathi(), arabic()]))
    reached = set()
    for _ in range(12):
        tab.keyboard.press("Tab")
        reached.add(
            tab.evaluate("() => [document.activeElement].map((one) => one.name || one.ariaLabel || one.type)[0]")
        )
    assert {"view", "level", "evidence", "button", "Play", "Step of decoding"} <= reached
    assert "Weights: arrow keys move from word to word" in reached


def test_pieces(show: Open) -> None:
    trace = marathi()
    tab = show(page([trace]))
    tab.locator("input[value=units]").check(force=True)
    assert tab.locator(".name").all_inner_texts() == [piece.text or END for piece in trace.target.pieces]
    assert tab.locator(".head").all_inner_texts() == [piece.text or END for piece in trace.source.pieces]
    point(tab, 7, 4)
    assert summary(tab) == f"वाच looks at read with {report(trace.weights[7, 4])}"


def test_stepping_through_decoding(show: Open) -> None:
    trace = marathi()
    tab = show(page([trace]))
    slider = tab.get_by_label("Step of decoding")
    slider.focus()
    tab.keyboard.press("Home")  # the first piece: half of the first word
    assert tab.locator(".name:not(.unrevealed)").all_inner_texts() == ["म्हातारा"]
    assert lit(tab, ".name") == ["म्हातारा"]
    assert tab.locator(".pair dd").nth(1).locator("[data-unit]:not(.unrevealed)").all_inner_texts() == ["म्हा"]
    for _ in range(7):
        tab.keyboard.press("ArrowRight")
    assert "step 8 of 12" in tab.locator(".player").inner_text()
    assert lit(tab, ".name") == ["वाचत"]
    revealed = tab.locator(".pair dd").nth(1).locator("[data-unit]:not(.unrevealed)").all_inner_texts()
    assert "".join(revealed) == MARATHI.replace(" ", "")[: len("".join(revealed))] and revealed[-1] == "वाच"
    bars = [item.split("\n") for item in tab.locator(".bars li").all_inner_texts()]
    step = trace.steps[7]
    assert bars[0] == ["वाच", f"{100 * step.probability:.1f} %"]
    assert bars[1:] == [[text or END, f"{100 * chance:.1f} %"] for text, chance in step.others[:5]]
    tab.keyboard.press(",")
    assert "step 7 of 12" in tab.locator(".player").inner_text()
    tab.keyboard.press("Escape")
    assert tab.locator(".unrevealed").count() == 0 and lit(tab, ".name") == []


def test_stepping_in_the_links(show: Open) -> None:
    tab = show(page([marathi()]))
    tab.locator("input[value=links]").check(force=True)
    slider = tab.get_by_label("Step of decoding")
    slider.fill("3")
    assert tab.locator(".query-tokens .token:not(.unrevealed)").all_inner_texts() == ["म्हातारा", "माणूस"]
    rows = tab.locator(".base path[visibility=visible]").evaluate_all("(all) => all.map((path) => path.dataset.row)")
    assert rows and set(rows) <= {"0", "1"}


def test_playing(show: Open) -> None:
    tab = show(page([marathi()]))
    tab.get_by_label("Play").click()
    assert "step 1 of 12" in tab.locator(".player").inner_text()
    tab.wait_for_function("() => document.querySelector('.player output').textContent.startsWith('step 2 ')")
    tab.get_by_label("Pause").click()
    here = tab.locator(".player output").inner_text()
    tab.wait_for_timeout(1000)
    assert tab.locator(".player output").inner_text() == here


def test_heads_and_layers(show: Open) -> None:
    trace = many_heads(4, 4)
    tab = show(page([trace]))
    point(tab, 0, 0)
    assert summary(tab).endswith(at(trace, 0, 0))
    tab.locator("select[name=layer]").select_option("3")  # counted from 0, as everywhere
    tab.locator("select[name=head]").select_option(label="3")
    tab.locator(".name").first.hover()
    assert summary(tab) == f"म्हातारा looks at {END} 1.00"
    tab.locator("input[name=attention][value='1']").check(force=True)
    assert tab.locator(".name").all_inner_texts() == tab.locator(".head").all_inner_texts()
    assert tab.locator(".name").first.inner_text() == "The"
    one = show(page([marathi()]))
    assert one.locator("select[name=layer], select[name=head], [name=attention]").count() == 0


def test_doubtful_words_are_shaded_until_something_is_pointed_at(show: Open) -> None:
    trace = marathi()
    assert show(page([trace])).locator("dd.confidence").count() == 0
    values = [0.99] * len(trace.target.text_words)
    values[1], values[3] = 0.25, 0.5
    tab = show(page([replace(trace, confidence=values)]))
    target = tab.locator(".pair dd").nth(1)
    doubtful = [trace.target.words[1].text, trace.target.words[3].text]
    assert target.locator(".lit").all_inner_texts() == doubtful
    assert target.locator("[data-word='1']").get_attribute("title") == "confidence 0.25"
    assert f"{sum(values) / len(values):.2f}" in tab.locator("dd.confidence").inner_text()
    grounds = [
        tab.evaluate(
            "(one) => getComputedStyle(one).backgroundColor", target.locator(f"[data-word='{word}']").element_handle()
        )
        for word in (1, 3, 0)
    ]
    assert len(set(grounds)) == 3 and grounds[2] == "rgba(0, 0, 0, 0)"
    tab.locator(".name", has_text="वर्तमानपत्र").hover()
    assert target.locator(".lit").count() == 0 and tab.locator(".pair dd").first.locator(".lit").count() > 0
    tab.mouse.move(1, 1)
    assert target.locator(".lit").all_inner_texts() == doubtful
    tab.locator("input[value=units]").check(force=True)
    assert target.locator(".lit").all_inner_texts() == doubtful


def test_a_label(show: Open) -> None:
    """A classifier has words of its own: text, label, probabilities; its confusion matrix is a table."""
    tab = show(page([label()]))
    assert tab.locator(".pair dt").all_inner_texts() == ["Text", "Label"]
    bars = [item.split("\n") for item in tab.get_by_label("Probabilities").locator("li").all_inner_texts()]
    assert bars == [["excuse", "87.4 %"], ["news", "10.0 %"], ["<i>advert</i>", "2.6 %"]]
    assert "Target" not in tab.inner_text("main") and "search found" not in tab.inner_text("main")
    table = tab.locator("table.confusion")
    assert table.locator("tbody tr").nth(1).inner_text().split("\t") == ["news", "5", "60", "1"]
    assert "accuracy 90.8 % · macro-F1 88.1, on 120 texts" in tab.locator(".card").inner_text()
    assert tab.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")


def test_sentences(show: Open) -> None:
    tab = show(page([marathi(), arabic(), chinese(), plain("<b>x</b>", "</script><i>y</i>")]))
    buttons = tab.locator(".list button")
    assert buttons.count() == 4
    buttons.nth(2).click()
    assert tab.locator(".head").all_inner_texts() == ["老人", "在", "花园", "里", "看", "报纸", "。", END]
    assert tab.locator(".list button[aria-current]").count() == 1
    buttons.nth(3).click()
    assert tab.locator(".pair dd").all_inner_texts() == ["<b>x</b>", "</script><i>y</i>"]
    assert tab.locator("b, main i:not(.legend i):not(.bars i)").count() == 0
    one = show(page([marathi()]))
    assert one.locator(".list").count() == 0


def test_evidence_beside_the_weights(show: Open) -> None:
    trace = marathi()
    tab = show(page([trace]))
    assert tab.locator("select[name=evidence] option").all_inner_texts() == [
        "nothing",
        *(f"{each.name} · agreement {each.agreement:.2f}" for each in trace.evidence),
    ]
    tab.locator("select[name=evidence]").select_option(index=1)
    assert "agreement with the weights 0.63" in tab.locator("figure").nth(1).inner_text()
    point(tab, 1, 2)
    value = trace.evidence[0].values[1, 2]
    result = summary(tab)
    assert result.startswith(f"माणूस looks at man with {at(trace, 1, 2)} leave one out ")
    assert abs(float(result.split()[-1]) - value) < 0.03
    assert tab.locator(".name.on").count() == 2
    tab.locator("input[value=units]").check(force=True)
    tab.locator("figure").nth(1).locator(".name").nth(4).hover()
    assert lit(tab, ".name") == ["वाच", "वाचत"]


def test_candidates_and_the_card(show: Open) -> None:
    tab = show(page([marathi()]))
    assert "uniform attention" in tab.get_by_label("Without attention").inner_text()
    rows = tab.get_by_label("Answers the search found").locator("tbody tr").all_inner_texts()
    assert next(row.split("\t") for row in rows) == [MARATHI, "−0.231", "−2.77"] and len(rows) == 3
    assert "chrF++ 71.3 · BLEU 48.2" in tab.locator(".card").inner_text()


def test_frames_side_by_side(show: Open) -> None:
    """As in a notebook with two traces: both are shown, and each minds itself."""
    shown = "".join(trace._repr_html_() for trace in (marathi(), chinese()))
    tab = show(f"<!doctype html><meta charset=utf-8><p>A notebook</p>{shown}")
    first, second = tab.frames[1:]
    for inner, text in ((first, MARATHI), (second, "老人在花园里看报纸。")):
        assert text in inner.locator(".pair").inner_text() and inner.locator(".cell").count() > 0
    second.locator("input[value=links]").check(force=True)
    assert second.locator(".links").count() == 1 and first.locator(".links").count() == 0
    first.locator(".name").first.hover()
    assert "looks at" in first.locator(".summary").inner_text()
    assert "looks at" not in second.locator(".summary").inner_text()
    for inner in (first, second):
        inner.wait_for_function("() => Math.abs(window.innerHeight - document.body.getBoundingClientRect().height) < 6")
        assert inner.evaluate("() => document.documentElement.scrollHeight <= window.innerHeight + 1")


def test_nothing_to_show(show: Open) -> None:
    trace = marathi()
    tab = show(page([Trace(trace.source, trace.target, []), trace]))
    assert "no weights" in tab.locator(".stage").inner_text()
    tab.locator(".list button").nth(1).click()
    assert tab.locator(".cell").count() > 0


def test_the_history(show: Open) -> None:
    given = moments(6)
    tab = show(history_page(given))
    assert tab.locator(".curve svg path").count() == 4
    assert tab.locator(".curve .number").all_inner_texts() == [f"{given[-1].loss:.3f}", f"{given[-1].score:.1f}"]
    slider = tab.get_by_label("Validation")
    slider.focus()
    tab.keyboard.press("Home")
    assert "update 250 · epoch 0.8" in tab.locator(".time").inner_text()
    assert tab.locator(".curve .number").all_inner_texts() == [f"{given[0].loss:.3f}", f"{given[0].score:.1f}"]
    point(tab, 1, 2)
    early = float(summary(tab).split()[-1])
    tab.keyboard.press("End")
    point(tab, 1, 1)
    point(tab, 1, 2)
    assert float(summary(tab).split()[-1]) > 3 * early
    tab.locator(".list button").nth(1).click()
    assert tab.locator(".time output").inner_text().startswith("update 1,500")
    box = tab.locator(".curve svg").first.bounding_box()
    tab.mouse.click(box["x"] + 50, box["y"] + 40)
    assert "update 250" in tab.locator(".time output").inner_text()
    tab.get_by_label("Play").click()
    tab.wait_for_function("() => document.querySelector('.time output').textContent.includes('update 750')")


def test_a_history_of_one_moment_without_a_loss(show: Open) -> None:
    tab = show(history_page([Moment(10, 0.5, float("nan"), 3.0, [marathi()])]))
    assert tab.locator(".curve .number").all_inner_texts() == ["–", "3.0"]
    assert tab.locator(".cell").count() > 0
