/* Compare: two models on one sentence, side by side and as a difference; and the tables of `regard compare`. */

import { showComparison } from "../../compare/compare.js";
import { attentionPicture, number, picture, range } from "../../look/data.js";
import { legend, lettering, make } from "../../look/drawing.js";
import { Grid } from "../../look/grid.js";
import { makeChoice } from "../../look/panels.js";
import { makeField, makeProblem, makeSelect, section, sideways } from "../parts.js";

export const title = "Compare";
export const task = null;
export const available = (models) => models.filter((model) => model.task === "translate").length > 0;
export const hint = "Start the studio with two translators, or with the folder of a comparison by regard compare.";

const EXAMPLE = "The boy is good.";

export async function mount(element, { api, models, parameters, replace, announce, signal }) {
  const translators = models.filter((model) => model.task === "translate");
  const names = translators.map(({ name }) => [name, name]);
  const known = (name, fallback) => (translators.some((model) => model.name === name) ? name : fallback);
  const first = known(parameters.get("model"), translators[0].name);
  const other = translators.find(({ name }) => name !== first) ?? translators[0];
  const second = known(parameters.get("second"), other.name);
  const problem = makeProblem();
  const controls = {
    text: make("input", {
      type: "text", value: parameters.get("text") ?? "", placeholder: EXAMPLE, dir: "auto", maxlength: 1000,
    }),
    first: makeSelect("first", names, first, () => run()),
    second: makeSelect("second", names, second, () => run()),
    target: make("input", { type: "text", dir: "auto", maxlength: 1000 }),
  };
  const result = make("div", { class: "comparison" });
  const form = make("form", { class: "panel form", submit: (event) => (event.preventDefault(), run()) },
    make("div", { class: "wide" }, makeField("Sentence", controls.text)),
    makeField("First model", controls.first), makeField("Second model", controls.second),
    make("div", { class: "wide" }, makeField("A translation of your own (optional)", controls.target,
      "Both models read it: how probable is it for each, and where do they look?")),
    make("button", { type: "submit", class: "button primary" }, "Compare"));
  const tables = make("div", {});
  element.append(form, problem.element, result, tables);
  let render = () => {};

  async function run() {
    const text = controls.text.value.trim() || EXAMPLE;
    const body = { text, models: [controls.first.value, controls.second.value], target: controls.target.value };
    replace({ text: controls.text.value || null, model: body.models[0], second: body.models[1] });
    result.classList.add("waiting");
    try {
      render = showSentence(result, await api.post("/api/studio/compare", body, { key: "compare" }), announce);
      problem.show(null);
      result.classList.remove("waiting");
    } catch (error) {
      problem.show(error);
    }
  }

  const choose = (text, one, other) => {
    Object.assign(controls.text, { value: text });
    Object.assign(controls.first, { value: one });
    Object.assign(controls.second, { value: other });
    window.scrollTo({ top: 0 });
    run();
  };
  const renders = await showTables(tables, api, choose);
  await run();
  const again = () => [render, ...renders].forEach((each) => each());
  return redrawn(element, again, signal);
}

/** Draw again when the width or the colours change; return what ends it. */
function redrawn(element, again, signal) {
  let width = element.clientWidth;
  const observer = new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    again();
  });
  observer.observe(element);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again, { signal });
  return () => observer.disconnect();
}

/** The translations of both models, and the attention of both while they read the same, or each its own. */
function showSentence(element, answer, announce) {
  const { targets, content } = answer;
  const traceOf = (target, model) => content.traces[0][2 * target + model];
  const equal = targets[0].text === targets[1].text;
  const state = { words: equal ? 0 : "own", parts: [{ layer: -1, head: -1 }, { layer: -1, head: -1 }] };
  const stage = make("div", { class: "grids" });
  const choices = make("div", { class: "choices" });
  const summary = make("p", { class: "summary", "aria-live": "polite" });
  element.replaceChildren(translationTable(answer), section("Where they look", choices, summary, stage));
  let figures = [];

  function render() {
    const read = ({ by }) => (by === null ? "yours" : equal ? "their translation" : `that of ${answer.models[by]}`);
    const options = [
      ...(equal ? [] : [["own", "each its own translation"]]),
      ...targets.map((target, place) => [place, read(target)]).filter((_, place) => !(equal && place === 1)),
    ];
    choices.replaceChildren(makeChoice("While they read", "words", options, state.words, (words) => {
      state.words = words;
      render();
    }));
    const traces = [0, 1].map((model) => traceOf(state.words === "own" ? model : state.words, model));
    const shown = traces.map((trace, model) =>
      attentionPicture(trace, { attention: 0, level: "words", fixed: true, ...state.parts[model] }));
    const comparable = state.words !== "own" && targets[state.words].comparable;
    const pictures = comparable ? [...shown, difference(...shown)] : shown;
    const columns = Math.max(1, Math.min(pictures.length, Math.floor(stage.clientWidth / 340)));
    stage.style.setProperty("grid-template-columns", `repeat(${columns}, minmax(0, 1fr))`);
    const room = (stage.clientWidth - 36 * (columns - 1)) / columns - 6;
    figures = pictures.map((each, place) => makeFigure(each, place, traces[place], room));
    stage.replaceChildren(...figures.map((figure) => figure.element));
    figures.forEach(({ view }) => view.settle());
    light(null, null);
  }

  function makeFigure(shown, place, trace, room) {
    const name = place < 2 ? answer.models[place] : "difference";
    const label = place < 2 ? `Attention of ${name}: arrow keys move from word to word`
      : "Difference: first model minus second";
    const view = new Grid(shown, { room, point: (focus) => light(place, focus), label });
    const title = place < 2 ? [make("strong", {}, name)]
      : [make("strong", {}, "Difference"), ` ${answer.models.join(" − ")}`];
    const caption = make("figcaption", {}, title, place < 2 ? parts(trace, place) : null);
    return { view, shown, element: make("figure", {}, caption, make("div", { class: "scroll" }, view.element),
      make("div", { class: "choices foot" }, legend(shown))) };
  }

  /** The layer and the head of a model. */
  function parts(trace, place) {
    const { layers, heads } = trace.attentions[0];
    const pick = (name, count) => {
      const options = [["-1", "mean"], ...range(count).map((each) => [String(each), String(each)])];
      const change = (value) => {
        state.parts[place][name] = Number(value);
        render();
      };
      return count < 2 ? null : make("label", { class: "choice" }, make("span", { class: "what" }, name),
        makeSelect(name, options, String(state.parts[place][name]), change));
    };
    return [pick("layer", layers), pick("head", heads)];
  }

  /** Light what is pointed at in all pictures; where the answers differ, the word of the source alone. */
  function light(place, focus) {
    const same = state.words !== "own" && figures.length === 3;
    figures.forEach(({ view }, index) => {
      const shared = focus && focus.column >= 0 ? { row: -1, column: focus.column } : null;
      view.light(index === place || same ? focus : shared);
    });
    if (!focus || focus.row < 0 || focus.column < 0) {
      const hint = figures.length === 3 ? "The difference is that of the first model minus the second."
        : "Let both read the same translation, and the difference of their weights can be shown.";
      summary.replaceChildren(make("span", { class: "hint" }, hint));
      return;
    }
    const { shown } = figures[place];
    const values = (same ? figures : [figures[place]]).map((figure, index) => [
      make("span", { class: "quiet" }, same ? (index < 2 ? answer.models[index] : "difference") : answer.models[place]),
      make("span", { class: "number" }, number(figure.shown.at(focus.row, focus.column)))]);
    summary.replaceChildren(lettering(shown.rows, focus.row, "strong"), make("span", { class: "quiet" }, "looks at"),
      lettering(shown.columns, focus.column, "strong"), ...values.flat());
  }

  render();
  announce("Both models have translated");
  return render;
}

function difference(one, other) {
  const values = one.values.map((value, place) => value - other.values[place]);
  const top = Math.max(0.1, ...values.map(Math.abs));
  return picture(one.rows, one.columns, values, { low: -top, top, level: "words" });
}

function translationTable({ targets, models }) {
  const likelier = ([one, other]) => (one === other ? -1 : one > other ? 0 : 1);
  const names = ["Translation", ...models.map((name) => `log p by ${name}`)];
  const head = names.map((name) => make("th", { scope: "col" }, name));
  const rows = targets.map(({ text, by, log_probabilities: values }) => make("tr", {},
    make("td", {}, make("span", { class: "what" }, by === null ? "yours" : models[by]),
      make("span", { dir: "auto" }, text || "(nothing)")),
    values.map((value, model) =>
      make("td", { class: `number${likelier(values) === model ? " likelier" : ""}` }, number(value, 2)))));
  return sideways("Translations", make("table", { class: "translations" }, make("thead", {}, make("tr", {}, head)),
    make("tbody", {}, rows)));
}

/** The results of the comparisons that the server was given; a sentence on which kinds differ can be chosen. */
async function showTables(element, api, choose) {
  const renders = [];
  for (const name of await api.get("/api/studio/comparisons")) {
    const { comparison, differing, models } = await api.get(`/api/studio/comparisons/${encodeURIComponent(name)}`);
    const place = make("div", {});
    element.append(section(`regard compare: ${name}`, place));
    renders.push(showComparison(place, { comparison, traces: [[]] }));
    const kinds = comparison.kinds.filter(({ name: kind }) => kind in models).map(({ name: kind }) => kind);
    if (kinds.length < 2) continue;
    const list = differList(differing, kinds, models, choose);
    place.append(section("Sentences on which the kinds differ most", list));
  }
  return renders;
}

function differList(differing, kinds, models, choose) {
  const items = differing.map(({ source, translations, scores }) => {
    const [best, worst] = [scores.indexOf(Math.max(...scores)), scores.indexOf(Math.min(...scores))];
    const line = (place) => make("span", {},
      make("span", { class: "what" }, `${kinds[place]} ${number(scores[place], 0)}`),
      " ", make("span", { dir: "auto" }, translations[place] || "(nothing)"));
    const click = () => choose(source, models[kinds[best]], models[kinds[worst]]);
    return make("li", {}, make("button", { type: "button", click },
      make("strong", { dir: "auto" }, source), line(best), line(worst)));
  });
  return make("ul", { class: "rows" }, items);
}
