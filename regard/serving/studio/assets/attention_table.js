/* The numbers of one attention: a row for each source piece with its key, energy, weight and value; above it the query,
   below it the context. What a stage has not reached yet is hidden. */

import { number } from "../look/data.js";
import { lettering, make } from "../look/drawing.js";
import { contributions } from "./attention_stages.js";
import { makeStrip, topOf } from "./strip.js";

const COLUMNS = ["Piece", "Key", "Energy", "Allowed", "Weight", "Value"];
/* the stage (from 0) at which each column appears */
const REACHED = [0, 1, 2, 3, 4, 5];

/** A number with a bar that goes to the right from zero, or to the left. `before`: where the model's own value ends. */
function bar(value, top, { low = 0, before = null, digits = 2 } = {}) {
  const span = top - low || 1;
  const place = (each) => `${(100 * (each - low)) / span}%`;
  const [from, to] = [Math.min(0, value), Math.max(0, value)];
  const style = { "inset-inline-start": place(from), width: `${(100 * (to - from)) / span}%` };
  const mark = before === null ? null : make("b", { style: { "inset-inline-start": place(before) } });
  const drawn = make("i", { class: "bar", "aria-hidden": "true" }, make("u", { style }), mark);
  return [make("span", { class: "number" }, number(value, digits)), drawn];
}

/** `answer`: as POST /api/studio/learn-step returns it; `source`: {names, end, direction, language}; `pointed(text)`
    says what is pointed at, null for nothing; `choose(piece)` when a row is chosen. */
export function makeAttentionTable({ answer, source, stage, piece, pointed, choose }) {
  const { own, altered } = answer;
  const reading = altered ?? own;
  const [keyTop, valueTop] = [topOf(...own.keys), topOf(...own.values)];
  const sameScore = altered && altered.score === own.score; /* else the energies have nothing in common */
  const [most, least] = [Math.max(...reading.scores, 0), Math.min(...reading.scores, 0)];
  const strip = (label, values, top, high) => makeStrip({
    label, values, top, high, point: (at) => pointed(at && `${at.label}, feature ${at.index}: ${number(at.value, 3)}`),
  });
  const cell = (column, ...content) => make("td", {
    class: `stage-${REACHED[column]}`, hidden: REACHED[column] > stage, "data-title": COLUMNS[column],
  }, ...content);

  const rows = source.names.map((name, index) => {
    const allowed = reading.allowed[index];
    const label = index === source.end ? "the end" : name;
    const button = make("button", {
      type: "button", class: "piece", "aria-pressed": String(index === piece), click: () => choose(index),
    }, lettering(source, index));
    const kinds = [index === piece && "chosen", stage >= 3 && !allowed && "hidden-key"];
    return make("tr", { class: kinds.filter(Boolean).join(" ") },
      make("th", { scope: "row" }, button),
      cell(1, strip(`Key of ${label}`, own.keys[index], keyTop)),
      cell(2, ...bar(reading.scores[index], most, { low: least, before: sameScore ? own.scores[index] : null })),
      cell(3, make("span", {}, allowed ? "yes" : "hidden")),
      cell(4, ...bar(reading.weights[index], 1, { before: altered ? own.weights[index] : null, digits: 3 })),
      cell(5, strip(`Value of ${label}`, own.values[index], valueTop)));
  });
  const heads = COLUMNS.map((title, column) => make("th", {
    scope: "col", class: column ? `stage-${REACHED[column]}` : null, hidden: REACHED[column] > stage,
  }, title));
  const line = (at, title, vector) => make("div", { class: `vector stage-${at}`, hidden: at > stage },
    make("span", { class: "what" }, title), strip(title, vector, topOf(vector), 26));
  const parts = contributions(reading, own.keys[piece]);
  const name = piece === source.end ? "the end" : source.names[piece];
  const others = altered && altered.score === "Cosine"; /* of unit length, not those shown */
  return make("div", { class: "attention-table", "data-stage": stage },
    line(0, "Query", reading.query),
    make("div", { class: "rows" },
      make("table", {}, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, rows))),
    stage === 2 && !others
      ? line(2, `Feature by feature for ${name}: they add up to ${number(reading.scores[piece])}`, parts) : null,
    altered && stage >= 2 ? make("p", { class: "message" }, "A thin line marks the model's own value.") : null,
    line(5, "Context", reading.context));
}

/** The likeliest next pieces, with bars; where attention was altered, the model's own probability is marked. */
export function makeNextWords(next, { direction, language }, end) {
  const rows = next.map(({ text, chosen, own, altered }) => {
    const probability = altered ?? own;
    const side = { names: [text || end], end: text ? -1 : 0, direction, language };
    const style = { "inset-inline-start": 0, width: `${100 * probability}%` };
    const mark = altered === null ? null : make("b", { style: { "inset-inline-start": `${100 * own}%` } });
    return make("li", { class: chosen ? "chosen" : null }, make("span", {}, lettering(side, 0)),
      make("i", { class: "bar", "aria-hidden": "true" }, make("u", { style }), mark),
      make("span", { class: "number" }, `${number(100 * probability, 1)} %`,
        altered === null ? null : make("small", {}, ` was ${number(100 * own, 1)} %`)));
  });
  return make("ol", { class: "next-pieces" }, rows);
}
