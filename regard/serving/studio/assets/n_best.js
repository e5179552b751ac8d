/* The other translations of a sentence that the search has found. */

import { number } from "../look/data.js";
import { make } from "../look/drawing.js";
import { textOf } from "../look/panels.js";

/** `choose(text)` for a click on one of them. */
export function makeNBest({ languages: [from, to], direction, choose }) {
  const element = make("section", { class: "panel", "aria-label": "Other translations" });

  /** Show those of a segment, {trace, candidates}; `named`: with the sentence itself, because there are several. */
  function show(segment, named) {
    element.hidden = !segment?.candidates.length;
    if (element.hidden) return;
    const { trace, candidates } = segment;
    const current = textOf(trace.target);
    const items = candidates.map(([text, score]) => make("li", {}, make("button", {
      type: "button", "aria-pressed": String(text === current), click: () => choose(text),
    }, make("span", { lang: to, dir: direction }, text),
    make("span", { class: "number", title: "score of the search: log p by length" }, number(score, 2)))));
    const which = make("p", { class: "message" }, "of ", make("bdi", { lang: from }, textOf(trace.source)));
    element.replaceChildren(make("h2", {}, "Other translations"), ...(named ? [which] : []),
      make("ol", { class: "n-best" }, items));
  }

  return { element, show };
}
