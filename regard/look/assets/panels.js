/* What surrounds the picture: sentences to choose from, switches, other answers, the model's card. */

import { number } from "./data.js";
import { make, tint } from "./drawing.js";

export const textOf = (side) => side.units.map(([gap, letters]) => gap + letters).join("");

export function makeList(traces, choose) {
  const line = (side) => make("span", { dir: side.direction, lang: side.language }, textOf(side));
  const buttons = traces.map((trace, index) =>
    make("button", { type: "button", click: () => choose(index) }, line(trace.source), line(trace.target)));
  const element = make("nav", { class: "list", "aria-label": "Sentences" }, buttons);

  function show(chosen) {
    buttons.forEach((button, index) => {
      if (index === chosen) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
  }

  return { element, show };
}

/** A few short options stand side by side, more of them in a menu: [value, name] each. */
export function makeChoice(what, name, options, value, change) {
  const pick = (text) => change(options.find(([each]) => String(each) === text)[0]);
  const title = make("span", { class: "what" }, what);
  if (options.length > 3 || name === "evidence") {
    const items = options.map(([each, text]) => make("option", { value: each, selected: each === value }, text));
    const menu = make("select", { name, change: (event) => pick(event.target.value) }, items);
    return make("label", { class: "choice" }, title, menu);
  }
  const radios = options.map(([each, text]) => make("label", {},
    make("input", { type: "radio", name, value: each, checked: each === value, change: () => pick(String(each)) }),
    make("span", {}, text)));
  const group = make("span", { class: "radios", role: "radiogroup", "aria-label": what || name }, radios);
  return make("div", { class: "choice" }, what ? title : null, group);
}

export function makeCandidates(trace, learning = false) {
  if (!trace.candidates.length) return null;
  if (trace.answer === "label") return makeProbabilities(trace);
  const title = learning ? "What it had to say" : "Answers the search found";
  const head = [title, "score", "log p"].map((name) => make("th", { scope: "col" }, name));
  const rows = trace.candidates.map(([text, score, logProbability]) => make("tr", {},
    make("td", { dir: trace.target.direction, lang: trace.target.language }, text),
    make("td", { class: "number" }, number(score, 3)), make("td", { class: "number" }, number(logProbability, 2))));
  return make("section", { "aria-label": title },
    make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows)));
}

/** The probabilities of a classifier's labels, the most probable first. */
function makeProbabilities(trace) {
  const label = textOf(trace.target);
  const rows = trace.candidates.map(([name, probability]) => make("li", { class: name === label ? "chosen" : null },
    make("span", { dir: "auto" }, name), make("i", { style: { "--probability": probability ?? 0 } }),
    make("span", { class: "number" }, `${number(100 * probability, 1)} %`)));
  return make("section", { "aria-label": "Probabilities" }, make("h2", {}, "Probabilities"),
    make("ol", { class: "bars labels" }, rows));
}

/** What it says when its attention is taken from it, and how likely its answer is then. */
export function makeAltered(trace) {
  if (!trace.altered.length) return null;
  const titles = ["What it says without its attention", "attention", "log p"];
  const head = titles.map((name) =>
    make("th", { scope: "col", title: name === "log p" ? "of the answer shown here" : null }, name));
  const rows = trace.altered.map(([name, text, logProbability]) => make("tr", {},
    make("td", { dir: trace.target.direction, lang: trace.target.language }, text),
    make("td", { class: "way" }, name), make("td", { class: "number" }, number(logProbability, 2))));
  return make("section", { "aria-label": "Without attention" },
    make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows)));
}

export function makeCard({ lines, confusion }) {
  if (!lines.length) return null;
  const items = lines.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  return make("section", { "aria-label": "Model" }, make("h2", {}, "Model"), make("dl", { class: "card" }, items),
    confusion && makeConfusion(confusion));
}

/** A row for each expected label, a column for each predicted one; darker where more of the row's texts are. */
export function makeConfusion({ labels, counts }) {
  const name = (label) => make("span", { dir: "auto" }, label);
  const head = labels.map((label) => make("th", { scope: "col" }, name(label)));
  const rows = counts.map((row, expected) => {
    const total = row.reduce((sum, count) => sum + count, 0) || 1;
    const cells = row.map((count, predicted) => {
      const cell = make("td", { class: predicted === expected ? "right" : null }, count ? count.toLocaleString("en") : "·");
      tint(cell, predicted === expected ? count / total : -count / total, 1);
      return cell;
    });
    return make("tr", {}, make("th", { scope: "row" }, name(labels[expected])), cells);
  });
  const caption = "Confusion matrix: rows are the expected labels, columns the predicted ones";
  return make("div", { class: "sideways" }, make("table", { class: "confusion" }, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, make("td"), head)), make("tbody", {}, rows)));
}

export function makeKeys(learning, stepped) {
  const key = (text) => make("kbd", {}, text);
  const steps = [" · ", key(","), " ", key("."), " ",
    ...(learning ? ["from validation to validation"] : ["step through decoding · ", key("Esc"), " shows all again"])];
  const arrows = ["←", "→", "↑", "↓"].flatMap((arrow) => [key(arrow), " "]);
  return make("p", { class: "keys" }, arrows, "move about the picture", learning || stepped ? steps : null);
}
