/* The explorer of traces: the texts, choices, the picture, steps of decoding, other answers and the model's card.

   `makeExplorer(content, options)` takes the content of a page (regard/look/page_data.py). Any number of explorers can
   be on a page. Options, all of them optional:

     main            the tag of the part beside the list of sentences: "main" where the page has no other
     without         names of parts to leave out: "pair", "steps", "below", "keys"
     after           an element to stand between the picture and what is below it
     onWord          called with (side, word, trace) for a click on a word of the texts; side is "source" or "target"
     onCell          called with ({row, column, level, attention, layer, head}, trace) for a click in the picture or
                     Enter there; row and column are −1 where a whole column or row is meant
     onPoint         called with ({row, column, level} or null, trace) when something else is pointed at
     onTrace         called with (trace) when another sentence or validation is shown
     onChoice        called with (state) when another view, layer, head or evidence is chosen

   The explorer is `{element, render(), show(content), choose(changes), destroy(), trace, state}`. Call `render` once the
   element is on the page: what is drawn depends on its width. */

import { attentionPicture, evidencePicture, number, range } from "./data.js";
import { legend, make } from "./drawing.js";
import { Grid } from "./grid.js";
import { Links } from "./links.js";
import { makeAltered, makeCandidates, makeCard, makeChoice, makeKeys, makeList } from "./panels.js";
import { makeSteps } from "./steps.js";
import { makePair, showSummary, spokenSummary } from "./texts.js";
import { makeTime } from "./time.js";

const ATTENTIONS = { cross: "Cross", encoder: "Encoder", decoder: "Decoder", pool: "Pool" };
const TYPING = "select, textarea, input:not([type=range], [type=radio], [type=checkbox])";

/** A word of a side as it stands in a picture by `level`, and back. */
const toWord = (side, level, index) => (index < 0 || level === "words" ? index : side.groups[index]);
const fromWord = (side, level, index) => (index < 0 || level === "words" ? index : side.groups.indexOf(index));

export function makeExplorer(content, options = {}) {
  return new Explorer(content, options);
}

class Explorer {
  constructor(content, options) {
    this.options = options;
    this.without = new Set(options.without ?? []);
    this.state = {
      moment: 0, sentence: 0, view: "grid", level: "words",
      attention: 0, layer: -1, head: -1, evidence: -1, whole: false, step: null, pointed: null,
    };
    this.views = []; /* the picture, and that of the evidence it is compared with */
    this.slots = {
      pair: make("div"), stage: make("div", { class: "stage" }), steps: make("div"), below: make("div"),
      keys: make("div"), /* radios of a form are its own */
      choices: make("form", { class: "choices", submit: (event) => event.preventDefault() }),
    };
    this.summary = make("p", { class: "summary" });
    this.spoken = make("p", { class: "spoken", "aria-live": "polite" });
    this.work = make("div", { class: "work" }, this.slots.stage, this.slots.steps);
    this.main = make(options.main ?? "div", { class: "explorer" });
    this.main.append(...this.mainParts());
    this.element = make("div");
    this.take(content);
    this.listen();
  }

  mainParts() {
    const { pair, choices, below, keys } = this.slots;
    const { after } = this.options;
    const all = [[pair, "pair"], [choices], [this.summary], [this.spoken], [this.work], [after], [below, "below"],
      [keys, "keys"]];
    return all.filter(([part, name]) => part && !this.without.has(name)).map(([part]) => part);
  }

  get trace() {
    return this.content.traces[this.state.moment][this.state.sentence];
  }

  get attended() {
    return this.trace.attentions[this.state.attention];
  }

  get looksAcross() {
    return this.attended?.rows === "target" && this.attended?.columns === "source";
  }

  /** Build what surrounds the traces of `content`: their list, and the slider of a history. */
  take(content) {
    this.content = content;
    this.learning = content.moments !== null;
    const differ = ({ units, words }) => units.length !== words.length;
    this.pieced = content.traces.flat().some(({ source, target }) => differ(source) || differ(target));
    const last = content.traces.length - 1;
    Object.assign(this.state, { moment: last, sentence: Math.min(this.state.sentence, content.traces[0].length - 1) });
    this.slots.stage.style.removeProperty("min-height");
    this.time = this.learning
      ? makeTime(content.moments, (moment) => ((this.state.moment = moment), this.renderTrace()))
      : null;
    this.list = content.traces[0].length > 1 ? makeList(content.traces[last], (sentence) => this.go(sentence)) : null;
    this.element.replaceChildren(
      ...(this.time ? [this.time.element] : []),
      make("div", { class: this.list ? "several" : null }, this.list?.element, this.main));
  }

  listen() {
    this.ending = new AbortController();
    const { signal } = this.ending;
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => this.redraw(), { signal });
    document.addEventListener("keydown", (event) => this.key(event), { signal });
    let width = null;
    this.observer = new ResizeObserver(() => {
      if (width !== null && this.main.clientWidth !== width) this.redraw();
      width = this.main.clientWidth;
    });
    this.observer.observe(this.main);
  }

  destroy() {
    this.ending.abort();
    this.observer.disconnect();
    this.steps?.player.stop();
    this.time?.player.stop();
    this.element.remove();
  }

  key(event) {
    if (event.target.matches?.(TYPING) || event.ctrlKey || event.metaKey || event.altKey) return;
    const player = this.learning ? this.time.player : this.steps?.player;
    if (event.key === ",") player?.by(-1);
    if (event.key === ".") player?.by(1);
    if (event.key === "Escape" && this.steps) {
      this.steps.player.stop();
      this.steps.player.set(this.trace.target.units.length);
      this.goToStep(null);
    }
  }

  /** Show other traces; what is chosen stays, where it can. */
  show(content) {
    this.take(content);
    this.render();
  }

  /** Draw again what is there, in another size or other colours. */
  redraw() {
    if (!this.pair) return; /* never drawn yet */
    this.time?.show();
    this.renderStage();
  }

  render() {
    this.list?.show(this.state.sentence);
    this.time?.show();
    this.renderTrace();
  }

  go(sentence) {
    this.state.sentence = sentence;
    this.slots.stage.style.removeProperty("min-height");
    this.list.show(sentence);
    this.renderTrace();
  }

  choose(changes) {
    Object.assign(this.state, changes, { pointed: null });
    this.renderChoices();
    this.renderPair();
    this.renderStage();
    this.options.onChoice?.(this.state);
  }

  point(focus) {
    const same = JSON.stringify(focus) === JSON.stringify(this.state.pointed);
    this.state.pointed = focus;
    if (same) return;
    this.light();
    this.options.onPoint?.(focus && { ...focus, level: this.state.level }, this.trace);
  }

  press(focus) {
    const { level, attention, layer, head } = this.state;
    if (focus) this.options.onCell?.({ ...focus, level, attention, layer, head }, this.trace);
  }

  /** What is pointed at; else the row of the step, or the only one there is. */
  focused() {
    const { pointed, step, level } = this.state;
    const { target } = this.trace;
    if (pointed || this.attended?.rows !== "target") return pointed;
    if (target.units.length === 1) return { row: 0, column: -1 };
    if (step === null) return null;
    return { row: level === "words" ? target.groups[step - 1] : step - 1, column: -1 };
  }

  light() {
    if (!this.views.length) return;
    const { trace, state } = this;
    const { rows, columns } = this.attended;
    const focus = this.focused();
    const [shown, compared] = this.views.map((view) => view.shown);
    const toWords = (key, index) => toWord(trace[key], state.level, index);
    const word = focus && { row: toWords(rows, focus.row), column: toWords(columns, focus.column) };
    this.views[0].light(focus);
    this.views[1]?.light(word);
    this.pair.light(shown, rows, columns, focus);
    const both = compared && word && word.row >= 0 && word.column >= 0;
    const other = both ? { name: trace.evidence[state.evidence].name, value: compared.at(word.row, word.column) } : null;
    showSummary(this.summary, shown, focus, other);
    this.spoken.replaceChildren(state.pointed ? spokenSummary(shown, focus) : "");
    if (!this.steps) return;
    const row = rows === "target" ? (state.pointed?.row ?? -1) : -1;
    if (row >= 0) this.steps.show(state.level === "words" ? Math.max(trace.target.groups.indexOf(row), 0) : row);
    else this.steps.show(state.step === null ? null : state.step - 1);
  }

  /** Show the answer up to the current step. */
  reveal() {
    const { target } = this.trace;
    const units = this.state.step ?? target.units.length;
    const count = (key, level) => {
      if (key !== "target" || this.state.step === null) return Infinity;
      return level === "words" ? target.groups[units - 1] + 1 : units;
    };
    this.views.forEach((view) => view.reveal(
      Math.min(count(view.keys[0], view.shown.level), view.shown.height),
      Math.min(count(view.keys[1], view.shown.level), view.shown.width)));
    this.pair.reveal(units);
  }

  goToStep(step) {
    Object.assign(this.state, { step, pointed: null });
    this.reveal();
    this.light();
  }

  /** Another sentence, or the same at another time. */
  renderTrace() {
    const { trace, state } = this;
    const validIndex = (index, count) => (index < count ? index : -1);
    const attention = Math.max(validIndex(state.attention, trace.attentions.length), 0);
    Object.assign(state, { step: null, pointed: null, attention });
    state.layer = validIndex(state.layer, this.attended?.layers ?? 0);
    state.head = validIndex(state.head, this.attended?.heads ?? 0);
    state.evidence = validIndex(state.evidence, trace.evidence.length);
    this.steps?.player.stop();
    const stepped = !this.learning && !this.without.has("steps") && trace.target.units.length > 1;
    this.steps = stepped ? makeSteps(trace, (step) => this.goToStep(step)) : null;
    this.slots.steps.replaceChildren(...(this.steps ? [this.steps.element] : []));
    this.slots.keys.replaceChildren(makeKeys(this.learning, stepped));
    const card = makeCard(this.content.cards[trace.card]);
    const below = [makeCandidates(trace, this.learning), makeAltered(trace), card].filter(Boolean);
    this.slots.below.replaceChildren(make("div", { class: "below" }, below));
    this.renderPair();
    this.renderChoices();
    this.renderStage();
    this.options.onTrace?.(trace);
  }

  renderChoices() {
    const focusedName = this.slots.choices.contains(document.activeElement) ? document.activeElement.name : null;
    const { trace, state, attended } = this;
    const mean = (count) => [[-1, "mean"], ...range(count).map((index) => [index, String(index)])];
    const kinds = [["grid", "Grid"], ["links", "Links"]];
    const choices = [];
    const add = (there, title, name, options, change = (value) => this.choose({ [name]: value })) =>
      there && choices.push(makeChoice(title, name, options, state[name], change));
    add(true, "", "view", kinds);
    add(this.pieced, "", "level", [["words", "Words"], ["units", "Pieces"]]);
    add(trace.attentions.length > 1, "Attention", "attention",
      trace.attentions.map(({ name }, index) => [index, ATTENTIONS[name]]),
      (attention) => this.choose({ attention, layer: -1, head: -1 }));
    add(attended?.layers > 1, "Layer", "layer", mean(attended?.layers));
    add(attended?.heads > 1, "Head", "head", mean(attended?.heads));
    const others = trace.evidence.map(({ name, agreement }, index) => [index, `${name} · agreement ${number(agreement)}`]);
    add(trace.evidence.length > 0 && this.looksAcross, "Compare with", "evidence", [[-1, "nothing"], ...others]);
    this.slots.choices.replaceChildren(...choices);
    const again = `select[name="${focusedName}"], input[name="${focusedName}"]:checked`;
    if (focusedName) this.slots.choices.querySelector(again)?.focus();
  }

  renderPair() {
    const { onWord } = this.options;
    this.pair = makePair(this.trace, this.state.level, (key, index) => {
      if (index === null || !this.attended) return this.point(null);
      const { rows, columns } = this.attended;
      return this.point(key === rows ? { row: index, column: -1 } : key === columns ? { row: -1, column: index } : null);
    }, onWord && ((key, word) => onWord(key, word, this.trace)));
    this.slots.pair.replaceChildren(this.pair.element);
  }

  renderStage() {
    const { trace, state, attended } = this;
    const { stage } = this.slots;
    this.views = [];
    if (!attended || !trace.source.units.length || !trace.target.units.length) {
      stage.replaceChildren(make("p", { class: "hint" }, "There are no weights to show."));
      return;
    }
    const comparing = state.evidence >= 0 && this.looksAcross;
    const shown = attentionPicture(trace, { ...state, fixed: this.learning });
    this.work.classList.toggle("aside",
      Boolean(this.steps) && !comparing && this.main.clientWidth >= 960 && shown.width <= 24);
    const width = Math.max(stage.clientWidth, 240) - 6;
    const room = comparing && width > 860 ? (width - 42) / 2 : width;
    const figures = [this.weights(shown, room, comparing), ...(comparing ? [this.comparison(room)] : [])];
    stage.replaceChildren(...figures);
    this.views.forEach((view) => view.settle());
    /* so that nothing jumps while it plays */
    if (this.learning) stage.style.setProperty("min-height", `${stage.offsetHeight}px`);
    this.reveal();
    this.light();
  }

  weights(shown, room, comparing) {
    const { rows, columns } = this.attended;
    const Kind = this.state.view === "grid" ? Grid : Links;
    const view = new Kind(shown, {
      room, whole: this.state.whole, point: (focus) => this.point(focus),
      press: this.options.onCell && ((focus) => this.press(focus)), label: "Weights: arrow keys move from word to word",
    });
    this.views.push(Object.assign(view, { keys: [rows, columns] }));
    return this.figure(view, comparing ? [make("strong", {}, "Weights")] : null);
  }

  /** The figure of the evidence that the weights are compared with. */
  comparison(room) {
    const { trace, state } = this;
    const { name, agreement } = trace.evidence[state.evidence];
    const point = (focus) => this.point(focus && {
      row: fromWord(trace.target, state.level, focus.row), column: fromWord(trace.source, state.level, focus.column),
    });
    const view = new Grid(evidencePicture(trace, state.evidence), { room, point, label: name });
    this.views.push(Object.assign(view, { keys: ["target", "source"] }));
    const agreeing = make("strong", { class: "number" }, number(agreement));
    return this.figure(view, [make("strong", {}, name), " · agreement with the weights ", agreeing]);
  }

  figure(view, caption) {
    const { state } = this;
    const whole = state.view === "grid" && (view.scrolls || state.whole)
      ? make("button", {
        type: "button", class: "button", "aria-pressed": String(state.whole),
        click: () => this.choose({ whole: !state.whole }),
      }, "Whole picture")
      : null;
    return make("figure", { class: state.view === "links" && !caption ? "wide" : null },
      caption ? make("figcaption", {}, ...caption) : null, make("div", { class: "scroll" }, view.element),
      make("div", { class: "choices foot" }, legend(view.shown), whole));
  }
}
