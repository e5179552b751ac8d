/* Learn: a walk through the attention of one step of an answer, with the model's own numbers. */

import { END, BLANK, number, picture, range } from "../../look/data.js";
import { lettering, make } from "../../look/drawing.js";
import { Grid } from "../../look/grid.js";
import { makeChoice } from "../../look/panels.js";
import { makePlayer } from "../../look/steps.js";
import { isSuperseded } from "../api.js";
import { stagesOf } from "../attention_stages.js";
import { makeAttentionTable, makeNextWords } from "../attention_table.js";
import { directionOf, languageName } from "../languages.js";

export const title = "Learn";
export const task = "translate";
export const hint = "This view needs a translator: regard train PAIRS --out MODEL, then regard studio MODEL.";
export const available = (models) => models.some((model) => model.task === task);

const PAUSE = 350; /* milliseconds without typing before the text is sent */
const STAGES = 7;
const OWN = "own"; /* of a part: the model's */
const SCORES = [[OWN, "the model's"], ["dot", "dot"], ["scaled_dot", "scaled dot"], ["cosine", "cosine"]];
const NORMALIZERS = [
  [OWN, "the model's"], ["softmax", "softmax"], ["sparsemax", "sparsemax"], ["entmax15", "entmax 1.5"],
  ["hard", "hard"],
];
const UNCHANGED = { score: OWN, normalizer: OWN, pattern: "", temperature: 1, everywhere: false };
const TYPING = "select, textarea, input:not([type=range], [type=radio], [type=checkbox])";

export function mount(element, context) {
  const view = new LearnView(element, context);
  return () => view.end();
}

/** A side as pictures name it. */
function namedSide(side) {
  const end = side.ended ? side.pieces.length - 1 : -1;
  const names = side.pieces.map((text, index) => text.trim() || (index === end ? END : BLANK));
  return { names, end, direction: side.direction, language: side.language };
}

class LearnView {
  constructor(element, context) {
    this.context = context;
    this.state = { step: 0, layer: 0, head: 0, stage: 0, piece: 0, parts: { ...UNCHANGED } };
    this.answer = null; /* of the sentence */
    this.reading = null; /* of the step */
    this.build(element);
    this.showExamples(!this.text.value);
    if (this.text.value) this.ask();
  }

  build(element) {
    const { parameters, model, signal } = this.context;
    const [from] = model.languages ?? [null];
    const language = from ? languageName(from) : "Source";
    this.text = make("textarea", {
      class: "box", rows: 1, maxlength: 400, lang: from, dir: directionOf(from), spellcheck: "false",
      "aria-label": "Sentence", placeholder: "A sentence to walk through", input: () => this.typed(),
    }, parameters.get("text") ?? "");
    this.message = make("p", { class: "message", role: "status" });
    this.examples = make("div", { class: "row examples" });
    this.overview = make("section", { class: "panel overview", "aria-label": "Answer" });
    this.controls = make("form", {
      class: "panel controls", "aria-label": "Change the attention", submit: (event) => event.preventDefault(),
    });
    this.walk = make("section", { class: "panel walk", "aria-label": "Walk" });
    this.body = make("div", { class: "learn-body", hidden: true }, this.overview, this.walk, this.controls);
    element.append(make("h1", { class: "hidden" }, title),
      make("div", { class: "fields" }, make("label", {}, make("span", { class: "what" }, language), this.text)),
      this.examples, this.message, this.body);
    document.addEventListener("keydown", (event) => this.key(event), { signal });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.render(), { signal });
    let width = null;
    this.observer = new ResizeObserver(() => {
      if (width !== null && this.overview.clientWidth !== width) this.showOverview();
      width = this.overview.clientWidth;
    });
    this.observer.observe(this.overview);
    this.buildWalk();
  }

  buildWalk() {
    this.player = makePlayer({
      label: "Stage", count: STAGES, value: 1, pace: 2600, caption: (value) => `${value} of ${STAGES}`,
      change: (value) => this.goTo(value - 1),
    });
    const by = (change) => () => (this.player.stop(), this.player.by(change));
    this.heading = make("h2");
    this.formula = make("p", { class: "formula" });
    this.sentence = make("p", { class: "sentence", "aria-live": "polite" });
    this.table = make("div");
    this.readout = make("p", { class: "readout message", "aria-live": "polite" });
    this.walk.append(
      make("div", { class: "walk-steps" },
        make("button", { type: "button", class: "button", click: by(-1) }, "Previous"), this.player.element,
        make("button", { type: "button", class: "button primary", click: by(1) }, "Next")),
      this.heading, this.formula, this.sentence, this.table, this.readout,
      make("p", { class: "keys" }, make("kbd", {}, ","), " ", make("kbd", {}, "."), " previous and next stage"));
  }

  end() {
    clearTimeout(this.timer);
    this.player.stop();
    this.observer.disconnect();
  }

  key(event) {
    if (event.target.matches?.(TYPING) || event.ctrlKey || event.metaKey || event.altKey || !this.reading) return;
    if (event.key === ",") this.player.by(-1);
    if (event.key === ".") this.player.by(1);
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), PAUSE);
  }

  fail(error) {
    if (isSuperseded(error)) return;
    this.message.className = "message problem";
    this.message.replaceChildren(error.message);
  }

  /** Sentences to begin with; `first`: whether to walk through the first of them. */
  async showExamples(first) {
    try {
      const query = new URLSearchParams({ model: this.context.model.name });
      const all = await this.context.api.get(`/api/studio/look-examples?${query}`);
      const use = (text) => () => ((this.text.value = text), this.ask());
      this.examples.replaceChildren(...all.slice(0, 4).map(({ text }) =>
        make("button", { type: "button", class: "button", click: use(text) }, text)));
      if (first && all.length && !this.text.value) use(all[0].text)();
    } catch (error) {
      this.fail(error);
    }
  }

  /* The sentence */

  async ask() {
    const text = this.text.value.trim();
    this.context.replace({ text });
    if (!text) return;
    try {
      const request = { model: this.context.model.name, text };
      const answer = await this.context.api.post("/api/studio/learn", request, { key: "learn" });
      this.message.className = "message";
      this.message.replaceChildren(answer.notices.join(" · "));
      const [source, target] = [namedSide(answer.source), namedSide(answer.target)];
      Object.assign(this, { answer, asked: text, source, target, reading: null });
      const first = this.target.names.findIndex((name, index) => name !== BLANK || index === this.target.end);
      Object.assign(this.state, { step: Math.max(first, 0), layer: answer.weights.length - 1, head: 0, piece: 0 });
      this.body.hidden = false;
      this.showControls();
      this.showOverview();
      await this.read(true);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Ask for the step as it is chosen now. While a request is under way, the next waits; only the latest is sent. */
  async read(choosesPiece = false) {
    if (this.isReading) {
      this.again = { choosesPiece: choosesPiece || this.again?.choosesPiece };
      return;
    }
    this.isReading = true;
    try {
      const { step, layer, head, parts } = this.state;
      const part = (value) => (value === OWN || value === "" ? null : value);
      const request = {
        model: this.context.model.name, text: this.asked, tokens: this.answer.tokens, step, layer, head,
        score: part(parts.score), normalizer: part(parts.normalizer), pattern: part(parts.pattern.trim()),
        temperature: parts.temperature, everywhere: parts.everywhere,
      };
      this.reading = await this.context.api.post("/api/studio/learn-step", request);
      if (choosesPiece) {
        const { weights } = this.reading.own;
        this.state.piece = weights.indexOf(Math.max(...weights));
      }
      this.render();
    } catch (error) {
      this.fail(error);
    } finally {
      this.isReading = false;
    }
    const { again } = this;
    this.again = null;
    if (again) await this.read(again.choosesPiece);
  }

  /** The answer with all its steps: a click on a row chooses it. */
  showOverview() {
    if (!this.answer) return;
    const { layer, head, step } = this.state;
    const weights = this.answer.weights[layer][head];
    const values = Float32Array.from(weights.flat());
    const shown = picture(this.target, this.source, values, { low: 0, top: 1, level: "units" });
    const pieces = this.target.names.map((_, index) => make("button", {
      type: "button", class: "piece", "aria-pressed": String(index === step), click: () => this.choose({ step: index }),
    }, lettering(this.target, index)));
    this.grid = new Grid(shown, {
      room: Math.max(this.overview.clientWidth - 40, 200), whole: false,
      label: "Weights of the whole answer: Enter chooses a row",
      point: (focus) => this.grid.light(focus ?? { row: this.state.step, column: -1 }),
      press: (focus) => focus && focus.row >= 0 && this.choose({ step: focus.row }),
    });
    const { direction, language } = this.target;
    this.overview.replaceChildren(make("h2", {}, "The answer, piece by piece: choose one"),
      make("p", { class: "pieces", dir: direction, lang: language }, pieces),
      make("div", { class: "scroll" }, this.grid.element));
    this.grid.light({ row: step, column: -1 });
  }

  choose(changes) {
    Object.assign(this.state, changes);
    this.showOverview();
    this.read(true);
  }

  /* Other parts of attention */

  change(parts) {
    Object.assign(this.state.parts, parts);
    this.reset.disabled = JSON.stringify(this.state.parts) === JSON.stringify(UNCHANGED);
    this.read();
  }

  showControls() {
    const { parts, layer, head } = this.state;
    const [layers, heads] = [this.answer.weights.length, this.answer.weights[0].length];
    const counted = (count) => range(count).map((index) => [index, String(index + 1)]);
    const menu = (what, name, options) =>
      makeChoice(what, name, options, parts[name], (value) => this.change({ [name]: value }));
    this.temperature = make("output", { class: "number" }, number(parts.temperature));
    const slider = make("input", {
      type: "range", min: -2, max: 2, step: 0.05, value: Math.log2(parts.temperature), "aria-label": "Temperature",
      input: () => {
        const temperature = Number((2 ** Number(slider.value)).toFixed(3));
        this.temperature.replaceChildren(number(temperature));
        slider.setAttribute("aria-valuetext", number(temperature));
        this.change({ temperature });
      },
    });
    this.pattern = make("input", {
      type: "text", value: parts.pattern, maxlength: 2000, placeholder: "window(2)", spellcheck: "false",
      autocomplete: "off", "aria-describedby": "pattern-problem",
      input: () => this.change({ pattern: this.pattern.value }),
    });
    this.problem = make("p", { class: "message problem", id: "pattern-problem", role: "status" });
    this.reset = make("button", {
      type: "button", class: "button", disabled: JSON.stringify(parts) === JSON.stringify(UNCHANGED),
      click: () => ((this.state.parts = { ...UNCHANGED }), this.showControls(), this.read()),
    }, "As the model has it");
    const everywhere = make("label", { class: "check" }, make("input", {
      type: "checkbox", checked: parts.everywhere, change: (event) => this.change({ everywhere: event.target.checked }),
    }), "In all heads of all layers");
    this.controls.replaceChildren(make("h2", {}, "Change it, and see"),
      layers > 1 ? makeChoice("Layer", "layer", counted(layers), layer, (value) => this.choose({ layer: value })) : "",
      heads > 1 ? makeChoice("Head", "head", counted(heads), head, (value) => this.choose({ head: value })) : "",
      make("label", { class: "choice slider" },
        make("span", { class: "what" }, "Temperature"), slider, this.temperature),
      menu("Score", "score", SCORES), menu("Normalizer", "normalizer", NORMALIZERS),
      make("label", { class: "choice" }, make("span", { class: "what" }, "Pattern"), this.pattern), this.problem,
      layers * heads > 1 ? everywhere : "", this.reset);
  }

  /* The walk */

  goTo(stage) {
    this.state.stage = stage;
    this.render();
  }

  choosePiece(piece) {
    this.state.piece = piece;
    this.render();
    this.table.querySelectorAll(".piece")[piece].focus();
  }

  render() {
    if (!this.reading) return;
    const { reading: answer, state, source, target } = this;
    const { names } = source;
    const word = state.step === target.end ? "" : target.names[state.step];
    const several = this.answer.weights.flat().length > 1;
    const reading = answer.altered ?? answer.own;
    const stage = stagesOf({ reading, names, word, next: answer.next, several })[state.stage];
    this.heading.replaceChildren(`${state.stage + 1} · ${stage.title}`);
    this.formula.replaceChildren(stage.formula);
    this.sentence.replaceChildren(stage.sentence);
    this.problem.replaceChildren(answer.problem?.message ?? "");
    this.table.replaceChildren(
      makeAttentionTable({
        answer, source, stage: state.stage, piece: state.piece,
        pointed: (text) => this.readout.replaceChildren(text ?? ""), choose: (piece) => this.choosePiece(piece),
      }),
      state.stage === STAGES - 1 ? makeNextWords(answer.next, target, END) : "");
  }
}
