/* The pane in which the text is typed. Behind the text area lies a mirror of its text, whose words can be coloured. */

import { make, tint } from "../look/drawing.js";

/** `change(text)` for every edit; `point(segment, word)` for the word under the pointer, or `point(null)`. */
export function makeSourcePane({ text, language, direction, limit, change, point }) {
  const mirror = make("div", { class: "mirror", "aria-hidden": "true", lang: language, dir: direction });
  const area = make("textarea", {
    lang: language, dir: direction, "aria-label": "Text to translate", placeholder: "Type or paste text",
    spellcheck: "false", autocapitalize: "off", maxlength: limit, input: () => (showPlain(), change(area.value)),
  });
  const count = make("span", { class: "number" });
  const clear = make("button", { type: "button", class: "button plain", click: () => set("") }, "Clear");
  const element = make("section", { class: "pane", "aria-label": "Source" },
    make("div", { class: "pane-text" }, mirror, area),
    make("div", { class: "pane-foot" }, count, make("span", { class: "end-of-row" }, clear)));
  let words = []; /* [segment][word] → its element in the mirror */

  area.addEventListener("pointermove", (event) => {
    const under = document.elementsFromPoint(event.clientX, event.clientY);
    const word = under.find((each) => each.dataset.word !== undefined && mirror.contains(each));
    if (word) point(Number(word.dataset.segment), Number(word.dataset.word));
    else point(null);
  });
  area.addEventListener("pointerleave", () => point(null));

  function set(value) {
    area.value = value;
    showPlain();
    change(value);
    area.focus();
  }

  function showPlain() {
    words = [];
    mirror.replaceChildren(area.value);
    mark(false);
    count.replaceChildren(area.value.length ? `${area.value.length.toLocaleString("en")} characters` : "");
    clear.hidden = !area.value.length;
  }

  /** The coloured mirror is read instead of the text area, so that the letters have the ink of their ground. */
  function mark(on) {
    area.classList.toggle("marking", on);
    mirror.classList.toggle("marking", on);
  }

  /** Show which letters are which word. `segments`: {trace, coverage}, in the order of the text. */
  function showWords(segments) {
    const place = placer(area.value);
    words = segments.map(({ trace, coverage }, segment) => {
      const own = [];
      wordTexts(trace.source).forEach((letters, word) => place(letters, (text) => {
        const kind = coverage.missed.includes(word) ? "word missed" : "word";
        own[word] = make("span", { class: kind, "data-segment": segment, "data-word": word }, text);
        return own[word];
      }));
      return own;
    });
    mirror.replaceChildren(...place());
  }

  /** Colour the words of a segment: `values[word]` of `top`; null: no colours. `on`: the word pointed at. */
  function light(segment, values, top, on = -1) {
    words.flat().forEach((part) => part && (part.classList.remove("on"), tint(part, null)));
    mark(values !== null);
    if (values) words[segment]?.forEach((part, word) => tint(part, values[word], top));
    if (on >= 0) words[segment]?.[on]?.classList.add("on");
  }

  area.value = text;
  showPlain();
  return { element, area, set, showWords, light, text: () => area.value };
}

/** The words of a side as they stand in its text; the end token is empty. */
export function wordTexts({ units, groups }) {
  const texts = [];
  groups.forEach((word, index) => {
    const [gap, letters] = units[index];
    texts[word] = texts[word] === undefined ? letters : texts[word] + gap + letters;
  });
  return texts;
}

/** Cut a text into nodes: `place(letters, make)` puts what `make` returns where the letters stand next, if they do;
    `place()` returns all nodes. */
export function placer(text) {
  const nodes = [];
  let reached = 0;
  return (letters, wrap) => {
    if (letters === undefined) return [...nodes, text.slice(reached)];
    const start = letters ? text.indexOf(letters, reached) : -1;
    if (start < 0) return nodes;
    nodes.push(text.slice(reached, start), wrap(text.slice(start, start + letters.length)));
    reached = start + letters.length;
    return nodes;
  };
}
