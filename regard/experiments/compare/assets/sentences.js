/* Sentences of dev: what every kind makes of one, and the attention of all kinds side by side. */

import { attentionPicture, clamp, number, range } from "../look/data.js";
import { lettering, make } from "../look/drawing.js";
import { Grid } from "../look/grid.js";
import { textOf } from "../look/panels.js";
import { kindName, trainedKinds } from "./results.js";

/** The trace of a sentence by the `place`-th of the trained kinds. */
const traceOf = ({ comparison, traces }, sentence, place) =>
  traces[0][sentence * trainedKinds(comparison).length + place];

/** `content`: that of a page of traces (regard/look/page_data.py), and the comparison. */
export function makeSentences(content) {
  const kinds = trainedKinds(content.comparison);
  const chosen = kinds.map(() => ({ attention: 0, layer: -1, head: -1, level: "words" }));
  const [texts, grids] = [make("dl", { class: "texts" }), make("div", { class: "grids" })];
  const main = make("div", {}, texts, grids);
  let sentence = 0;
  let figures = [];
  const list = sentenceList(content, (index) => {
    sentence = index;
    show();
  });
  const element = make("div", { class: "several" }, list.element, main);

  function show() {
    list.show(sentence);
    showTexts(texts, content, sentence);
    const columns = clamp(Math.floor(main.clientWidth / 380), 1, 3);
    grids.style.setProperty("grid-template-columns", `repeat(${columns}, minmax(0, 1fr))`);
    const room = (main.clientWidth - 36 * (columns - 1)) / columns - 6;
    figures = kinds.map((_, place) => makeFigure(content, sentence, place, chosen[place], room, light, show));
    grids.replaceChildren(...figures.map((figure) => figure.element));
  }

  /** Light what is pointed at in one grid, and the same word of the source in all others. */
  function light(place, focus) {
    figures.forEach((figure, index) => {
      const shared = focus && focus.column >= 0 ? { row: -1, column: focus.column } : null;
      figure.light(index === place ? focus : shared);
    });
  }

  return { element, show };
}

function sentenceList(content, choose) {
  const { direction, language } = traceOf(content, 0, 0).source;
  const buttons = content.comparison.sentences.map(({ source, scores }, index) => {
    const spread = Math.max(...scores) - Math.min(...scores);
    return make("button", { type: "button", click: () => choose(index) },
      make("span", { class: "spread", title: "difference in chrF++ between kinds" }, number(spread, 0)),
      make("span", { dir: direction, lang: language }, source));
  });
  const element = make("nav", { class: "list", "aria-label": "Sentences" }, buttons);
  const show = (chosen) => buttons.forEach((button, index) => {
    if (index === chosen) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  });
  return { element, show };
}

function showTexts(element, content, sentence) {
  const { comparison } = content;
  const { references, scores } = comparison.sentences[sentence];
  const { source, target } = traceOf(content, sentence, 0);
  const row = (kind, title, side, text, score) => make("div", { class: kind }, make("dt", {}, title),
    make("dd", { dir: side.direction, lang: side.language, class: text ? null : "nothing" }, text || "nothing"),
    make("dd", { class: "number", title: score === null ? null : "chrF++ of this sentence" }, score === null ? "" : number(score, 0)));
  const manner = { ...target, direction: "auto" };
  element.replaceChildren(
    row("source", "source", source, textOf(source), null),
    ...references.map((text) => row("reference", "reference", manner, text, null)),
    ...trainedKinds(comparison).map((kind, place) => row("", kindName(comparison, comparison.kinds.indexOf(kind)),
      manner, textOf(traceOf(content, sentence, place).target), scores[place])));
}

/** The attention of one kind: the mean over all layers and heads, or of a chosen one. */
function makeFigure(content, sentence, place, options, room, light, show) {
  const { comparison } = content;
  const trace = traceOf(content, sentence, place);
  const given = trace.attentions[options.attention];
  const kind = comparison.kinds.indexOf(trainedKinds(comparison)[place]);
  const pick = (name, count, title) => {
    const numbers = [[-1, "mean"], ...range(count).map((index) => [index, String(index)])];
    return count < 2 ? null : makeMenu(title, numbers, options[name], (value) => {
      options[name] = value;
      show();
    });
  };
  const caption = make("figcaption", {}, kindName(comparison, kind, "strong"),
    pick("layer", given.layers, "layer"), pick("head", given.heads, "head"));
  const pointed = make("p", { class: "pointed", "aria-live": "polite" });
  const shown = { ...attentionPicture(trace, options), top: 1 }; /* the same colours for the same weights in all grids */
  const view = new Grid(shown, {
    room, point: (focus) => light(place, focus),
    label: `Attention of ${comparison.kinds[kind].name}: arrow keys move from word to word`,
  });
  const element = make("figure", {}, caption, make("div", { class: "scroll" }, view.element), pointed);
  return { element, light: (focus) => (view.light(focus), describe(pointed, shown, focus)) };
}

function makeMenu(title, options, value, change) {
  const items = options.map(([each, text]) => make("option", { value: each, selected: each === value }, text));
  const menu = make("select", { "aria-label": title, change: (event) => change(Number(event.target.value)) }, items);
  return make("label", { class: "choice" }, make("span", { class: "what" }, title), menu);
}

function describe(element, shown, focus) {
  element.replaceChildren();
  if (!focus || focus.row < 0 || focus.column < 0) return;
  const [row, column] = [lettering(shown.rows, focus.row, "b"), lettering(shown.columns, focus.column, "b")];
  element.append(row, " looks at ", column, " with ", make("b", { class: "number" }, number(shown.at(focus.row, focus.column))));
}
