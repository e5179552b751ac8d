/* The kinds and their table, the best first. */

import { number } from "../look/data.js";
import { make } from "../look/drawing.js";

export const trainedKinds = (comparison) => comparison.kinds.filter((kind) => kind.shown !== null);
const COLOURS = 8;

/** The colour of a kind, which all parts of the page share. */
export const kindStyle = (index) => ({ "--kind": `var(--kind-${index % COLOURS})` });
export const kindClass = (index, name) => [name, index >= COLOURS && "dashed"].filter(Boolean).join(" ");

export function kindName(comparison, index, tag = "span") {
  const swatch = make("i", { class: kindClass(index, "swatch"), style: kindStyle(index), "aria-hidden": "true" });
  return make(tag, { class: "kind" }, swatch, make("span", {}, comparison.kinds[index].name));
}

export function makeConclusions(comparison) {
  return make("div", { class: "conclusions" }, comparison.conclusions.map((text) => make("p", {}, text)));
}

/** [title, name of the value, digits, unit]; a column without any value is left out. */
const COLUMNS = [
  ["chrF++", "chrf", 1, ""], ["p", null], ["BLEU", "bleu", 1, ""], ["exact", "exact", 1, " %"], ["AER", "aer", 3, ""],
  ["minutes", "minutes", 1, ""], ["sentences/s", "sentences_per_second", 0, ""], ["parameters", "parameters", 0, ""],
];

export function makeResults(comparison, highlight) {
  const shown = COLUMNS.filter(([, name]) => name === null || trainedKinds(comparison).some((kind) => kind.values[name]));
  const head = ["kind", ...shown.map(([title]) => title)].map((title) => make("th", { scope: "col" }, title));
  const rows = comparison.kinds.map((kind, index) => {
    const name = make("td", {}, kindName(comparison, index), make("span", { class: "settings" }, kind.settings));
    const cells = kind.shown === null
      ? [make("td", { class: "failure", colspan: shown.length }, `failed: ${kind.failures[0]}`)]
      : shown.map((column) => make("td", {}, cellText(kind, column)));
    return make("tr", {
      class: index === 0 ? "best" : null, pointerenter: () => highlight(index), pointerleave: () => highlight(null),
    }, name, cells);
  });
  const table = make("table", { class: "results" },
    make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows));
  return {
    element: make("div", { class: "sideways", role: "region", tabindex: 0, "aria-label": "Table of results" }, table),
    highlight: (chosen) => rows.forEach((row, index) => row.classList.toggle("on", index === chosen)),
  };
}

function cellText(kind, [, name, places, unit]) {
  if (name === null) return kind.p === null ? "best" : number(kind.p, 3);
  const value = kind.values[name];
  if (!value) return "–";
  if (name === "parameters") return Math.round(value.mean).toLocaleString("en");
  const mean = `${number(value.mean, places)}${unit}`;
  if (name !== "chrf" || value.low === value.high) return mean;
  return [mean, make("span", { class: "range" }, ` ${number(value.low, 1)} … ${number(value.high, 1)}`)];
}

export function makeFacts(comparison) {
  const items = comparison.facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  return make("dl", { class: "card" }, items);
}
