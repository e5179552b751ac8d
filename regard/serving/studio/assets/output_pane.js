/* The pane of the translation: its words can be pointed at, walked through by keys, and clicked. */

import { make, tint } from "../look/drawing.js";
import { number } from "../look/data.js";
import { placer, wordTexts } from "./source_pane.js";

/** `point(segment, word)` or `point(null)`; `press(segment, word, element)` for a click or Enter. */
export function makeOutputPane({ language, direction, actions, point, press }) {
  const output = make("div", {
    class: "output", role: "group", lang: language, dir: direction,
    "aria-label": "Translation: arrow keys move from word to word, Enter shows other words",
  });
  const note = make("span");
  const text = make("div", { class: "pane-text" }, output);
  const element = make("section", { class: "pane answer", "aria-label": "Translation" }, text,
    make("div", { class: "pane-foot" }, note, make("span", { class: "end-of-row" }, actions)));
  let words = []; /* [segment][word] → its element */
  let confidence = []; /* [segment][word] */

  const placeOf = (part) => [Number(part.dataset.segment), Number(part.dataset.word)];
  output.addEventListener("pointermove", (event) => {
    const part = event.target.closest(".word");
    if (part) point(...placeOf(part));
    else point(null);
  });
  output.addEventListener("pointerleave", () => point(null));
  output.addEventListener("focusin", (event) => {
    if (event.target.matches(".word:focus-visible")) point(...placeOf(event.target));
  });
  output.addEventListener("focusout", () => point(null));
  output.addEventListener("click", (event) => {
    const part = event.target.closest(".word");
    if (part) press(...placeOf(part), part);
  });
  output.addEventListener("keydown", (event) => {
    const all = words.flat().filter(Boolean);
    const place = all.indexOf(event.target);
    if (place < 0) return;
    const [forward, back] = direction === "rtl" ? ["ArrowLeft", "ArrowRight"] : ["ArrowRight", "ArrowLeft"];
    const next = { [forward]: place + 1, [back]: place - 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") press(...placeOf(event.target), event.target);
    else if (next !== undefined) focusOn(all, next);
    else return;
    event.preventDefault();
  });

  /** One word alone can be reached by the tab key; the arrow keys lead on from it. */
  function focusOn(all, index) {
    const next = all[Math.min(Math.max(index, 0), all.length - 1)];
    all.forEach((word) => word.setAttribute("tabindex", word === next ? 0 : -1));
    next.focus();
  }

  /** The translation as it comes while typing, without words that can be pointed at. */
  function showPlain(lines) {
    words = [];
    confidence = [];
    output.replaceChildren(...lines.map((line) => make("p", {}, line)));
  }

  /** `lines`: {text, segments: [{trace, fixed}]}; `fixed`: how many words were chosen by the person. */
  function showWords(lines) {
    words = [];
    confidence = [];
    output.replaceChildren(...lines.map((line) => {
      const place = placer(line.text);
      line.segments.forEach((segment) => showSegment(place, segment));
      return make("p", {}, ...place());
    }));
    words.flat().find(Boolean)?.setAttribute("tabindex", 0);
    shade();
  }

  function showSegment(place, { trace, fixed }) {
    const { terms } = trace.target;
    const own = [];
    wordTexts(trace.target).forEach((text, word) => place(text, (letters) => {
      const kind = ["word", word < fixed && "fixed", terms.includes(word) && "term"].filter(Boolean).join(" ");
      own[word] = make("span", {
        class: kind, role: "button", tabindex: -1, "aria-haspopup": "dialog",
        "data-segment": words.length, "data-word": word,
      }, letters);
      return own[word];
    }));
    words.push(own);
    confidence.push(trace.confidence);
  }

  /** Shade the words that are probably wrong. */
  function shade() {
    words.forEach((own, segment) => own.forEach((part, word) => {
      const value = confidence[segment][word];
      tint(part, value === undefined ? null : value - 1, 1);
      if (value !== undefined) part.setAttribute("title", `confidence ${number(value)}`);
    }));
  }

  /** Colour the words of a segment by `values[word]` of `top`; null: by confidence. `on`: the word pointed at. */
  function light(segment, values, top, on = -1) {
    words.flat().forEach((part) => part && (part.classList.remove("on"), tint(part, null)));
    if (values) words[segment]?.forEach((part, word) => tint(part, values[word], top));
    else if (on < 0) shade();
    if (on >= 0) words[segment]?.[on]?.classList.add("on");
  }

  return { element, output, text, note, showPlain, showWords, light, word: (segment, word) => words[segment]?.[word] };
}
