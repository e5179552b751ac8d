"""The shell, Translate and Look in a browser, driven as a person would."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.serving.settings import ServerSettings
from tests.look.conftest import browser  # noqa: F401, a fixture
from tests.serving.live import running
from tests.serving.studio.browser import check_accessibility, fits, studio_tab
from tests.tasks.small import small
from tests.training import toy

TEXT = "The boy sees a mango."


@pytest.fixture(scope="module")
def address(translator_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a studio with two translators, one for each direction."""
    back = tmp_path_factory.mktemp("studio") / "back"
    small(back, [(target, source) for source, target in toy.PAIRS], languages=("mr", "en"))
    with running(ServerSettings([translator_folder, back], studio=True)) as running_address:
        yield running_address


def typed(tab: Any, text: str = TEXT) -> Any:
    """Type a text, wait for its details, and return the words of the translation."""
    tab.get_by_label("Text to translate").fill(text)
    tab.locator(".output .word").first.wait_for()
    return tab.locator(".output .word")


def test_results_while_typing(browser: Any, address: str) -> None:  # noqa: F811
    with studio_tab(browser, address) as tab:
        tab.get_by_label("Text to translate").press_sequentially("The b", delay=20)
        tab.wait_for_function("() => document.querySelector('.output').textContent.trim()")
        words = typed(tab)
        assert tab.locator(".output").inner_text().strip() == "".join(tab.locator(".output p").all_inner_texts())
        assert words.count() > 1 and "text=The+boy" in tab.url
        assert tab.locator(".output").get_attribute("lang") == "mr"
        assert tab.title() == "Translate · Regard studio"
        tab.get_by_role("button", name="Clear").click()
        assert tab.locator(".output").inner_text().strip() == ""
        tab.wait_for_function("() => !location.hash.includes('text')")


def test_pointing_at_words(browser: Any, address: str) -> None:  # noqa: F811
    with studio_tab(browser, address, f"#/translate?text={TEXT}") as tab:
        tab.locator(".output .word").first.hover()
        word = tab.locator(".output .word").first.inner_text()
        assert " ".join(tab.locator(".summary").inner_text().split()).startswith(f"{word} looks at ")
        assert tab.locator(".mirror .lit").count() > 0
        spoken = tab.locator("#announcement").inner_text()
        assert re.match(rf"{re.escape(word)} looks \d+ % at \S+", spoken)
        box = tab.locator(".mirror .word").nth(1).bounding_box()
        tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert " ".join(tab.locator(".summary").inner_text().split()).startswith("boy is looked at by ")
        assert tab.locator(".output .lit").count() > 0
        tab.mouse.move(1, 1)
        assert "Point at a word" in tab.locator(".summary").inner_text()


def test_another_word_by_the_keyboard(browser: Any, address: str) -> None:  # noqa: F811
    with studio_tab(browser, address, f"#/translate?text={TEXT}") as tab:
        first = tab.locator(".output .word").first
        first.focus()
        tab.keyboard.press("ArrowRight")
        assert tab.evaluate("() => document.activeElement.dataset.word") == "1"
        tab.keyboard.press("Home")
        tab.keyboard.press("Enter")
        dialog = tab.get_by_role("dialog")
        dialog.wait_for()
        entries = dialog.get_by_role("button")
        current = first.inner_text()
        assert dialog.locator("[aria-current]").inner_text().split("\n")[0] == current
        tab.keyboard.press("Escape")
        assert dialog.count() == 0 and tab.evaluate("() => document.activeElement.dataset.word") == "0"
        tab.keyboard.press("Enter")
        dialog.wait_for()
        other = next(entry for entry in entries.all() if entry.get_attribute("aria-current") is None)
        word = other.inner_text().split("\n")[0]
        other.click()
        tab.locator(".output .fixed").first.wait_for()
        assert tab.locator(".output").inner_text().startswith(word)
        tab.get_by_role("button", name="Undo").click()
        tab.wait_for_function("() => !document.querySelector('.output .fixed')")
        assert tab.locator(".output .word").first.inner_text() == current
        assert tab.get_by_role("button", name="Undo").count() == 0


def test_other_translations(browser: Any, address: str) -> None:  # noqa: F811
    with studio_tab(browser, address, f"#/translate?text={TEXT}") as tab:
        others = tab.get_by_label("Other translations").get_by_role("button")
        others.nth(1).wait_for()
        text = others.nth(1).locator("span").first.inner_text()
        others.nth(1).click()
        tab.wait_for_function("(text) => document.querySelector('.output').innerText.trim() === text", arg=text)
        assert others.nth(1).get_attribute("aria-pressed") == "true"


def test_glossary_keep_copy_and_share(browser: Any, address: str, tmp_path: Path) -> None:  # noqa: F811
    with studio_tab(browser, address, permissions=["clipboard-read", "clipboard-write"]) as tab:
        typed(tab, "The boy sees 12 mangos.")
        tab.locator(".glossary summary").click()
        tab.get_by_role("button", name="Add a term").click()
        tab.get_by_label("Source term").fill("boy")
        tab.get_by_label("Target term").fill("राहुल")
        tab.locator(".output .term", has_text="राहुल").wait_for()
        tab.get_by_text("Not translated").click()
        tab.get_by_label("Numbers").check()
        tab.wait_for_function("() => document.querySelector('.output').innerText.includes('12')")
        tab.locator(".output .word").first.wait_for()
        tab.get_by_role("button", name="Copy").click()
        tab.get_by_role("button", name="Copied").wait_for()
        copied = tab.evaluate("() => navigator.clipboard.readText()")
        assert copied == tab.locator(".output").inner_text().strip() and "राहुल" in copied
        with tab.expect_download() as download:
            tab.get_by_role("button", name="Share").click()
        download.value.save_as(tmp_path / "shared.html")
        assert "राहुल" in (tmp_path / "shared.html").read_text(encoding="utf-8")
        tab.reload()
        assert tab.locator(".glossary summary").inner_text() == "Glossary · 1"


def test_swapping_and_choosing_a_model(browser: Any, address: str) -> None:  # noqa: F811
    with studio_tab(browser, address) as tab:
        typed(tab)
        translation = tab.locator(".output").inner_text().strip()
        tab.get_by_role("button", name="Swap the languages").click()
        tab.wait_for_function("() => document.querySelector('textarea')?.lang === 'mr'")
        assert tab.get_by_label("Text to translate").input_value().strip() == translation
        assert tab.get_by_label("Model").input_value() == "back"
        tab.get_by_label("Model").select_option("toy")
        tab.wait_for_function("() => document.querySelector('textarea')?.lang === 'en'")
        assert tab.get_by_label("Text to translate").input_value().strip() == translation


def test_what_is_refused_is_said(browser: Any, address: str) -> None:  # noqa: F811
    with studio_tab(browser, address) as tab:
        tab.route("**/api/studio/translate", lambda route: route.fulfill(status=503, json={"error": "too busy"}))
        tab.get_by_label("Text to translate").fill("x")
        tab.locator(".message", has_text="too busy").wait_for()
        tab.unroute("**/api/studio/translate")
        tab.get_by_label("Text to translate").fill("The boy")
        tab.locator(".output .word").first.wait_for()
        assert tab.locator(".message.problem").count() == 0
        tab.console[:] = [message for message in tab.console if "503" not in message]


def test_text_is_never_markup(browser: Any, address: str) -> None:  # noqa: F811
    hostile = "<img src=x onerror=alert(1)> <b>boy</b>"
    with studio_tab(browser, address) as tab:
        typed(tab, hostile)
        assert tab.locator("main img, main b").count() == 0
        assert hostile in tab.locator(".mirror").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility(browser: Any, address: str, scheme: str) -> None:  # noqa: F811
    with studio_tab(browser, address, f"#/translate?text={TEXT}", color_scheme=scheme) as tab:
        tab.locator(".output .word").first.click()
        tab.get_by_role("dialog").wait_for()
        tab.locator(".glossary summary").evaluate("(summary) => summary.parentElement.open = true")
        check_accessibility(tab)
        tab.get_by_role("navigation").get_by_role("link", name="Look").click()
        tab.get_by_role("button", name="Test the weights").click()
        tab.locator("select[name=evidence]").wait_for()
        check_accessibility(tab)


def test_languages_have_their_directions(browser: Any, translator_folder: Path, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "arabic"
    shutil.copytree(translator_folder, folder)
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    (folder / "card.json").write_text(json.dumps(card | {"languages": ["ar", "ja"]}), encoding="utf-8")
    with (
        running(ServerSettings([folder], studio=True)) as own_address,
        studio_tab(browser, own_address, "#/translate?text=الرجل العجوز يقرأ 新闻。") as tab,
    ):
        tab.locator(".output .word").first.wait_for()
        area = tab.get_by_label("Text to translate")
        assert (area.get_attribute("dir"), area.get_attribute("lang")) == ("rtl", "ar")
        output = tab.locator(".output")
        assert (output.get_attribute("dir"), output.get_attribute("lang")) == ("ltr", "ja")
        assert [text.strip() for text in tab.locator(".languages .heading").all_inner_texts()] == ["Arabic", "Japanese"]
        words = [box["x"] for box in (each.bounding_box() for each in tab.locator(".mirror .word").all()[:3])]
        assert words == sorted(words, reverse=True)
        assert tab.get_by_role("button", name="Swap the languages").is_disabled()


def test_the_shell_by_keyboard_and_on_a_phone(browser: Any, address: str) -> None:  # noqa: F811
    settings = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    with studio_tab(browser, address, f"#/translate?text={TEXT}", **settings) as tab:
        tab.locator(".output .word").first.wait_for()
        assert fits(tab)
        tab.evaluate("() => document.activeElement.blur()")
        tab.locator(".skip").focus()
        tab.keyboard.press("Enter")
        assert tab.evaluate("() => document.activeElement.id") == "content" and "#/translate" in tab.url
        tab.get_by_role("navigation").get_by_role("link", name="Look").click()
        tab.locator(".cell").first.wait_for()
        assert tab.get_by_label("Text", exact=True).input_value() == TEXT, "the text goes along"
        assert fits(tab)


def test_looking_at_heads_and_evidence(browser: Any, address: str) -> None:  # noqa: F811
    with studio_tab(browser, address, f"#/look?text={TEXT}") as tab:
        tab.locator(".cell").first.wait_for()
        tab.locator(".grid").focus()
        tab.keyboard.press("ArrowRight")
        assert re.match(r".+ looks \d+ % at boy", tab.locator(".spoken").inner_text())
        tab.locator(".head-card").first.click()
        assert tab.locator(".head-card").first.get_attribute("aria-pressed") == "true"
        tab.locator("input[value=links]").check(force=True)
        assert tab.locator(".links").count() == 1
        tab.locator("input[value=grid]").check(force=True)
        tab.get_by_role("button", name="Test the weights").click()
        tab.locator("select[name=evidence]").wait_for()
        assert "uniform attention" in tab.get_by_label("Without attention").inner_text()
        assert tab.locator("figure").count() == 2


def test_forcing_the_attention(browser: Any, address: str) -> None:  # noqa: F811
    with studio_tab(browser, address, f"#/look?text={TEXT}") as tab:
        tab.locator(".cell").first.wait_for()
        word = tab.locator(".name").first.inner_text()
        tab.locator(".cells").click(position={"x": 20, "y": 20})
        tab.locator(".forced").wait_for()
        assert f"Had {word} looked only at The, the model would have said:" in tab.locator(".forced").inner_text()
        tab.locator(".head", has_text="boy").click()
        tab.locator(".forced", has_text="Had every word looked only at boy").wait_for()


def test_a_translation_of_ones_own_and_gold_links(browser: Any, address: str) -> None:  # noqa: F811
    with studio_tab(browser, address, "#/look") as tab:
        tab.get_by_label("Text", exact=True).fill(TEXT)
        tab.get_by_label("Translation of your own").fill("मुलगा पाणी.")
        tab.wait_for_function("() => document.querySelectorAll('.name').length === 4")
        assert tab.locator(".name").all_inner_texts()[:3] == ["मुलगा", "पाणी", "."]
        tab.get_by_label("With known links").select_option("0")
        tab.get_by_text("alignment error").first.wait_for()
        assert "gold=" in tab.url


def test_two_explorers_on_a_page(browser: Any, address: str) -> None:  # noqa: F811
    with studio_tab(browser, address) as tab:
        tab.get_by_label("Text to translate").wait_for()
        tab.evaluate(
            """async (text) => {
                 const { makeExplorer } = await import("/assets/look/explorer.js");
                 const body = JSON.stringify({ text });
                 const headers = { "Content-Type": "application/json" };
                 const answer = await fetch("/api/studio/look", { method: "POST", headers, body });
                 const { content } = await answer.json();
                 window.pressed = [];
                 window.explorers = [1, 2].map((number) => {
                   const onWord = (side, word) => pressed.push([number, side, word]);
                   const explorer = makeExplorer(content, { without: ["below", "keys"], onWord });
                   explorer.element.id = `explorer-${number}`;
                   document.querySelector("main").append(explorer.element);
                   explorer.render();
                   return explorer;
                 });
               }""",
            TEXT,
        )
        first, second = tab.locator("#explorer-1"), tab.locator("#explorer-2")
        first.locator("input[value=links]").check(force=True)
        assert first.locator(".links").count() == 1 and second.locator(".grid").count() == 1
        assert second.locator("input[value=grid]").is_checked(), "the switches of one are not those of the other"
        second.locator(".pair [data-word='1']").first.click()
        assert tab.evaluate("() => pressed") == [[2, "source", 1]]
        assert first.locator(".below, .keys").count() == 0
        tab.evaluate("() => explorers[0].destroy()")
        assert first.count() == 0 and second.locator(".cell").count() > 0
