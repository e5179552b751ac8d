/* The head report: a small picture of each head, what it does, and how widely it looks. */

import { attentionPicture, number } from "../look/data.js";
import { make } from "../look/drawing.js";
import { pixels } from "../look/grid.js";

const NAMES = { cross: "Cross-attention", encoder: "Encoder self-attention", decoder: "Decoder self-attention" };
const KINDS = {
  itself: "looks at itself", "previous word": "looks at the word before", "next word": "looks at the word after",
  "first word": "looks at the first word", "end token": "rests at the end", punctuation: "looks at punctuation",
  "in order": "goes along with the source", "one word": "picks one word each time", broad: "looks everywhere",
  mixed: "mixed",
};

/** `reports` as POST /api/studio/look returns them for `trace`; `choose({attention, layer, head})`. */
export function makeHeadReport(trace, reports, choose) {
  const buttons = [];
  const sections = trace.attentions.map(({ name }, attention) => {
    const own = reports.filter((report) => report.attention === name);
    const items = own.map((report) => {
      const { layer, head } = report;
      const choice = { attention, layer, head };
      const button = make("button", { type: "button", class: "head-card", click: () => choose(choice) },
        pixels(attentionPicture(trace, { ...choice, level: "words" })), describe(report, own.length > 1));
      buttons.push([button, choice]);
      return make("li", {}, button);
    });
    const what = NAMES[name] ?? name;
    return make("section", { "aria-label": what }, make("h3", {}, what), make("ul", { class: "head-cards" }, items));
  });
  const about = "What each head does in this sentence. Entropy: 0 bits where every word looks at one word alone.";
  const element = make("section", { class: "panel", "aria-label": "Head report" },
    make("h2", {}, "Head report"), make("p", { class: "message" }, about), sections);

  /** Mark the head that the picture shows; where there is one head only, its mean is the head itself. */
  function show(state) {
    buttons.forEach(([button, own]) => {
      const same = ["attention", "layer", "head"].every((key) => own[key] === state[key]);
      button.setAttribute("aria-pressed", String(same));
    });
  }

  return { element, show };
}

function describe({ layer, head, kind, share, entropy, aer }, several) {
  const numeral = (text) => make("span", { class: "number" }, text);
  return make("span", { class: "facts" },
    several ? make("strong", {}, `Layer ${layer} · head ${head}`) : null,
    make("span", {}, KINDS[kind] ?? kind, " ", numeral(`${number(100 * share, 0)} %`)),
    make("span", {}, numeral(number(entropy)), " bits"),
    aer === null ? null : make("span", {}, "alignment error ", numeral(number(aer))));
}
