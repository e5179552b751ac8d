/* Patterns: which query may attend to which key; drawn at any length, with density, kernel and costs. */

import { number, picture, range } from "../../look/data.js";
import { make } from "../../look/drawing.js";
import { Grid } from "../../look/grid.js";
import { makeChoice } from "../../look/panels.js";
import { isSuperseded } from "../api.js";

export const title = "Patterns";
export const task = null;
export const available = () => true;

const EXAMPLES = [
  "window(4)", "causal", "window(4) | global(0) | strided(8)", "dilated(4, 3)", "longformer(16, 0:2)",
  "bigbird(8, 0:2, random=2, block=4)", "grid(8, 8).axial", "per_head(causal, window(2), strided(4), full)",
];
const SCORES = ["scaled_dot", "dot", "cosine", "general", "additive"];
const NORMALIZERS = ["softmax", "sparsemax", "entmax15", "hard"];
const PAUSE = 120; /* milliseconds without typing before the text is sent */
const MAX_LENGTH = 1000000;
const KERNELS = {
  dense: "torch's own attention over all pairs",
  "small dense": "all pairs, which are few",
  tiles: "blocks of queries, each with the runs of keys it needs",
  regrouped: "positions regrouped into classes of the stride",
  union: "strided and other parts, each by itself, then merged",
  hard: "only the chosen key of each query",
  reference: "by definition, all pairs at once",
};

export function mount(element, context) {
  const view = new PatternsView(element, context);
  return () => view.end();
}

/** A large number for people: 1.2 M, 3.4 G. */
function large(value, unit) {
  const names = ["", "k", "M", "G", "T", "P", "E"];
  const power = value >= 1000 ? Math.min(Math.floor(Math.log10(value) / 3), names.length - 1) : 0;
  const scaled = value / 1000 ** power;
  const digits = power === 0 || scaled >= 100 ? 0 : scaled < 10 ? 2 : 1;
  return `${number(scaled, digits)} ${names[power]}${unit}`;
}

const percent = (value) => `${(100 * value).toLocaleString("en", { maximumSignificantDigits: 3 })} %`;
const count = (value) => value.toLocaleString("en");

class PatternsView {
  constructor(element, context) {
    this.context = context;
    const given = (name, otherwise) => context.parameters.get(name) ?? otherwise;
    this.state = {
      text: given("pattern", "window(4) | global(0) | strided(8)"), causal: given("causal", "") === "yes",
      length: Number(given("length", 64)) || 64, heads: Number(given("heads", 8)) || 8,
      features: Number(given("features", 64)) || 64,
      score: given("score", "scaled_dot"), normalizer: given("normalizer", "softmax"),
    };
    this.build(element);
    this.ask();
  }

  build(element) {
    const { state } = this;
    this.text = make("input", {
      type: "text", class: "pattern-text", value: state.text, maxlength: 2000, spellcheck: "false",
      autocomplete: "off", "aria-label": "Pattern", "aria-describedby": "text-problem",
      input: () => this.change({ text: this.text.value }),
    });
    this.place = make("div", { class: "problem-place", "aria-hidden": "true" });
    this.problem = make("p", { class: "message problem", id: "text-problem", role: "status" });
    const examples = EXAMPLES.map((text) =>
      make("button", { type: "button", class: "button example", click: () => this.use(text) }, text));
    this.options = make("form", { class: "choices", submit: (event) => event.preventDefault() });
    this.drawings = make("div", { class: "drawings" });
    this.lengths = make("section", { class: "panel", "aria-label": "At other lengths" });
    element.append(make("h1", { class: "hidden" }, title),
      make("div", {}, make("div", { class: "editor" }, this.text, this.place), this.problem),
      make("div", { class: "row examples", role: "group", "aria-label": "Examples" }, examples),
      this.options, this.drawings);
    this.showOptions();
    const { signal } = this.context;
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw(), { signal });
    let width = null;
    this.observer = new ResizeObserver(() => {
      if (width !== null && this.drawings.clientWidth !== width) this.draw();
      width = this.drawings.clientWidth;
    });
    this.observer.observe(this.drawings);
  }

  use(text) {
    this.text.value = text;
    this.change({ text, heads: text.startsWith("per_head") ? 4 : this.state.heads });
    this.showOptions();
  }

  end() {
    clearTimeout(this.timer);
    this.observer.disconnect();
  }

  showOptions() {
    const { state } = this;
    const menu = (what, name, options) =>
      makeChoice(what, name, options, state[name], (value) => this.change({ [name]: value }));
    const whole = (what, name, most) => {
      const take = (event) => {
        const value = Math.round(Number(event.target.value));
        if (value >= 1 && value <= most) this.change({ [name]: value });
      };
      const input = make("input", { type: "number", min: 1, max: most, value: state[name], input: take });
      return make("label", { class: "choice" }, make("span", { class: "what" }, what), input);
    };
    /* lengths from 8 to a million, evenly by their logarithms */
    const steps = Math.log2(MAX_LENGTH / 8);
    const slider = make("input", {
      type: "range", min: 0, max: 100, step: 1, value: (100 * Math.log2(state.length / 8)) / steps,
      "aria-label": "Length", input: () => {
        const length = Math.min(Math.round(8 * 2 ** ((steps * Number(slider.value)) / 100)), MAX_LENGTH);
        field.querySelector("input").value = length;
        this.change({ length });
      },
    });
    const field = whole("Length", "length", MAX_LENGTH);
    this.options.replaceChildren(make("div", { class: "choice slider" }, field, slider),
      make("label", { class: "check" }, make("input", {
        type: "checkbox", checked: state.causal, change: (event) => this.change({ causal: event.target.checked }),
      }), "Causal"),
      whole("Heads", "heads", 256), whole("Features a head", "features", 4096),
      menu("Score", "score", SCORES.map((name) => [name, name.replace("_", " ")])),
      menu("Normalizer", "normalizer", NORMALIZERS.map((name) => [name, name.replace("15", " 1.5")])));
  }

  change(changes) {
    Object.assign(this.state, changes);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), PAUSE);
  }

  async ask() {
    const { text, length, causal, heads, features, score, normalizer } = this.state;
    this.context.replace({ pattern: text, length, causal: causal ? "yes" : null, heads, features, score, normalizer });
    const request = { text, causal, heads, features, score, normalizer };
    try {
      this.answer = await this.context.api.post("/api/studio/pattern", { ...request, length }, { key: "pattern" });
      this.showProblem(this.answer.problem);
      if (this.answer.problem) return;
      this.draw();
      const { lengths } = await this.context.api.post("/api/studio/pattern-lengths", request, { key: "lengths" });
      this.showLengths(lengths);
    } catch (error) {
      if (!isSuperseded(error)) this.showProblem({ message: error.message, start: 0, end: 0 });
    }
  }

  /** The message, and a wavy line under the place it is about. */
  showProblem(problem) {
    this.problem.replaceChildren(problem?.message ?? "");
    this.text.setAttribute("aria-invalid", String(Boolean(problem)));
    const { text } = this.state;
    const marked = problem && make("u", {}, text.slice(problem.start, problem.end) || " ");
    this.place.replaceChildren(...(problem ? [text.slice(0, problem.start), marked] : []));
    this.drawings.classList.toggle("busy", Boolean(problem));
    this.lengths.classList.toggle("busy", Boolean(problem));
  }

  draw() {
    if (!this.answer?.groups.length) return;
    const { groups } = this.answer;
    this.drawings.classList.toggle("several-drawings", groups.length > 1);
    const drawings = groups.map((group) => this.drawGroup(group, groups.length));
    this.drawings.replaceChildren(...drawings, groups.length > 1 ? this.lengths : "");
  }

  drawGroup(group, groups) {
    const { length } = this.state;
    const { side } = group;
    const last = (index) => Math.min((index + 1) * side, length) - 1;
    const names = range(group.cells.length).map((index) =>
      (side === 1 ? String(index) : `${count(index * side)}–${count(last(index))}`));
    const axis = { names, end: -1, direction: "ltr", language: null };
    /* thin lines must be seen: the colour grows with the cube root of the fraction */
    const shade = (fraction) => (fraction > 0 ? 0.12 + 0.88 * Math.cbrt(fraction) : 0);
    const shown = picture(axis, axis, Float32Array.from(group.cells.flat(), shade), { low: 0, top: 1, level: "units" });
    const hint = side === 1 ? "Row: a query. Column: a key. Filled: may attend."
      : `A cell is ${count(side)} × ${count(side)} pairs; the stronger its colour, the more of them are allowed.`;
    const summary = make("p", { class: "message", "aria-live": "polite" }, hint);
    const point = (focus) => {
      grid.light(focus);
      if (!focus || focus.row < 0 || focus.column < 0) return summary.replaceChildren(hint);
      const fraction = group.cells[focus.row][focus.column];
      const many = `may attend: ${percent(fraction)} of the pairs`;
      const how = side > 1 ? many : fraction ? "may attend" : "may not attend";
      return summary.replaceChildren(`Query ${names[focus.row]} to key ${names[focus.column]}: ${how}`);
    };
    const across = Math.min(this.drawings.clientWidth, groups > 1 ? 340 : 600);
    const label = `${group.pattern}, ${count(length)} queries and keys`;
    const grid = new Grid(shown, { room: across, whole: true, point, label });
    const title = group.heads ? `Head ${group.heads.map((head) => head + 1).join(", ")}` : group.pattern;
    return make("section", { class: "drawing", "aria-label": title },
      make("figure", { style: { width: `${across}px` } },
        make("figcaption", {}, make("strong", {}, title), group.heads ? ` ${group.pattern}` : null),
        grid.element, summary),
      make("div", { class: "beside" }, this.facts(group), groups === 1 ? this.lengths : null));
  }

  facts(group) {
    const { length } = this.state;
    const estimated = group.counted < length
      ? make("small", {}, ` estimated from ${count(group.counted)} queries`) : null;
    const fact = (name, ...value) => [make("dt", {}, name), make("dd", {}, ...value)];
    const refusals = group.refusals.map(({ kernel, reason }) => [make("dt", {}, kernel), make("dd", {}, reason)]);
    return make("div", { class: "panel facts-of-pattern" },
      make("dl", { class: "card" },
        fact("Density", make("strong", {}, percent(group.density)), " of the pairs", estimated),
        fact("Computed", percent(group.computed), " of the pairs"),
        fact("Work", large(group.flops, "FLOP"), " forward"),
        fact("Memory", large(group.bytes, "B"), " saved for the backward pass"),
        fact("Kernel", make("strong", {}, group.kernel), KERNELS[group.kernel] ? `: ${KERNELS[group.kernel]}` : "")),
      group.refusals.length
        ? make("details", {}, make("summary", {}, "Why no other kernel"), make("dl", { class: "card" }, refusals))
        : null);
  }

  showLengths(lengths) {
    const head = ["Length", "Kernel", "Work", "of full", "Memory"].map((name) =>
      make("th", { scope: "col", class: name === "Kernel" ? "kernel" : null }, name));
    const numeric = (text) => make("td", { class: "number" }, text);
    const rows = lengths.map(({ length, kernels, flops, bytes, full }) => make("tr", {},
      numeric(count(length)), make("td", { class: "kernel" }, kernels.join(", ")), numeric(large(flops, "FLOP")),
      numeric(percent(flops / full)), numeric(large(bytes, "B"))));
    this.lengths.replaceChildren(make("h2", {}, "At other lengths"),
      make("div", { class: "sideways" }, make("table", { class: "lengths" },
        make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows))));
  }
}
