/* Look: every head of an answer, evidence about its weights, and what the model would have said with others. */

import { END, number } from "../../look/data.js";
import { make } from "../../look/drawing.js";
import { makeExplorer } from "../../look/explorer.js";
import { textOf } from "../../look/panels.js";
import { isSuperseded } from "../api.js";
import { makeHeadReport } from "../head_report.js";
import { directionOf, languageName } from "../languages.js";

export const title = "Look";
export const task = "translate";
export const hint = "This view needs a translator: regard train PAIRS --out MODEL, then regard studio MODEL.";
export const available = (models) => models.some((model) => model.task === task);

const PAUSE = 300; /* milliseconds without typing before the text is sent */
const MAX_CHARACTERS = 2000;

export function mount(element, context) {
  const view = new LookView(element, context);
  return () => view.end();
}

class LookView {
  constructor(element, context) {
    this.context = context;
    this.timer = null;
    this.explorer = null;
    this.gold = context.parameters.get("gold");
    this.build(element);
    this.showExamples();
    if (this.text.value) this.ask();
    else this.text.focus({ preventScroll: true });
  }

  build(element) {
    const { parameters, model } = this.context;
    const [from, to] = model.languages ?? [null, null];
    const field = (name, value, language, placeholder) => make("textarea", {
      class: "box", rows: 1, "aria-label": name, lang: language, dir: directionOf(language), placeholder,
      maxlength: MAX_CHARACTERS, spellcheck: "false", input: () => this.typed(),
    }, value ?? "");
    const named = (code, other) => (code ? languageName(code) : other);
    this.text = field("Text", parameters.get("text"), from, "A sentence to look at");
    this.target = field("Translation of your own", parameters.get("target"), to, "The model's own, or type yours");
    this.message = make("p", { class: "message", role: "status" });
    this.place = make("div");
    this.evidence = make("section", { class: "panel", "aria-label": "Evidence" });
    this.report = make("div");
    this.examples = make("div", { class: "row examples" });
    element.append(
      make("h1", { class: "hidden" }, title),
      make("div", { class: "fields" },
        make("label", {}, make("span", { class: "what" }, named(from, "Source")), this.text),
        make("label", {}, make("span", { class: "what" }, named(to, "Translation")), this.target)),
      this.examples, this.message, this.place, this.report);
    this.evidence.hidden = true;
  }

  end() {
    clearTimeout(this.timer);
    this.explorer?.destroy();
  }

  typed() {
    this.gold = null;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), PAUSE);
  }

  /** Sentences whose links are known. */
  async showExamples() {
    try {
      const query = new URLSearchParams({ model: this.context.model.name });
      const all = await this.context.api.get(`/api/studio/look-examples?${query}`);
      if (!all.length) return;
      const options = all.map(({ text }, index) => make("option", { value: index }, text));
      const use = (event) => {
        const chosen = all[Number(event.target.value)];
        if (!chosen) return;
        this.text.value = chosen.text;
        this.target.value = chosen.target;
        this.gold = chosen.gold;
        this.ask();
      };
      const menu = make("select", { change: use }, make("option", { value: "" }, "choose a sentence"), options);
      this.examples.replaceChildren(
        make("label", { class: "choice" }, make("span", { class: "what" }, "With known links"), menu));
    } catch (error) {
      this.fail(error);
    }
  }

  async ask() {
    const [text, target] = [this.text.value.trim(), this.target.value.trim()];
    this.context.replace({ text, target, gold: this.gold });
    if (!text) return;
    this.place.classList.add("busy");
    try {
      const request = { model: this.context.model.name, text, target: target || null, gold: this.gold };
      const answer = await this.context.api.post("/api/studio/look", request, { key: "look" });
      this.message.className = "message";
      this.message.replaceChildren(answer.notices.join(" · "));
      this.take(answer);
    } catch (error) {
      this.fail(error);
    } finally {
      this.place.classList.remove("busy");
    }
  }

  fail(error) {
    if (isSuperseded(error)) return;
    this.message.className = "message problem";
    this.message.replaceChildren(error.message);
  }

  take({ content, heads }) {
    if (!content) return;
    this.content = content;
    this.heads = heads;
    if (this.explorer) this.explorer.show(content);
    else {
      this.explorer = makeExplorer(content, {
        after: this.evidence, onCell: (cell) => this.force(cell), onTrace: () => this.showTrace(),
        onChoice: () => this.showChosen(),
      });
      this.place.append(this.explorer.element);
      this.explorer.render();
    }
  }

  get answer() {
    const { trace } = this.explorer;
    return { model: this.context.model.name, source: textOf(trace.source), target: textOf(trace.target) };
  }

  /** What belongs to one sentence: the report on its heads, and the evidence about it. */
  showTrace() {
    if (!this.explorer) return; /* it is being made: `render` comes later */
    const { trace, state } = this.explorer;
    this.headReport = makeHeadReport(trace, this.heads[state.sentence], (choice) => {
      this.explorer.choose(choice);
      this.explorer.element.scrollIntoView({ block: "nearest", behavior: "smooth" });
    });
    this.report.replaceChildren(this.headReport.element);
    this.evidence.hidden = false;
    this.showEvidence();
    this.showChosen();
  }

  showChosen() {
    this.headReport?.show(this.explorer.state);
  }

  /* Evidence */

  showEvidence(result = null) {
    const { trace } = this.explorer;
    const button = trace.evidence.length ? null : make("button", {
      type: "button", class: "button", click: () => this.gather(),
    }, "Test the weights");
    const agreements = trace.evidence.flatMap(({ name, agreement }) =>
      [make("dt", {}, name), make("dd", {}, `agreement with the weights ${number(agreement)}`)]);
    const note = (text) => make("p", { class: "message" }, text);
    this.evidence.replaceChildren(make("h2", {}, "Do the weights explain the answer?"),
      note("Click a cell of the picture: what would the model have said, had it looked there?"), result ?? "",
      ...(button
        ? [note("Or leave out each source word in turn, take gradients, and spread the attention evenly."), button]
        : [make("dl", { class: "card" }, agreements)]));
  }

  async gather() {
    const button = this.evidence.querySelector("button");
    button.disabled = true;
    button.replaceChildren("Testing …");
    try {
      const { content } = await this.context.api.post("/api/studio/evidence", this.answer, { key: "evidence" });
      const [tested] = content.traces[0];
      const { trace } = this.explorer;
      Object.assign(trace, { evidence: tested.evidence, altered: tested.altered });
      this.explorer.state.evidence = 0;
      this.explorer.render();
    } catch (error) {
      this.showEvidence();
      this.fail(error);
    }
  }

  /** What the model would have said if one word, or all, had looked at the source word of a cell. */
  async force({ row, column, level, attention }) {
    const { trace } = this.explorer;
    const { rows, columns } = trace.attentions[attention];
    if (column < 0 || rows !== "target" || columns !== "source") return;
    const word = (side, index) => (index < 0 || level === "words" ? index : side.groups[index]);
    const [sourceWord, targetWord] = [word(trace.source, column), word(trace.target, row)];
    const request = { ...this.answer, source_word: sourceWord, target_word: targetWord < 0 ? null : targetWord };
    try {
      const result = await this.context.api.post("/api/studio/force", request, { key: "force" });
      this.showEvidence(this.forced(trace, sourceWord, targetWord, result));
      this.evidence.scrollIntoView({ block: "nearest", behavior: "smooth" });
      this.context.announce(`It would have said: ${result.text}`);
    } catch (error) {
      this.fail(error);
    }
  }

  forced(trace, sourceWord, targetWord, { text, before, log_probability: after }) {
    const name = (side, index) =>
      make("strong", { lang: side.language, dir: side.direction }, side.words[index]?.trim() || END);
    const who = targetWord < 0 ? "every word" : name(trace.target, targetWord);
    return make("div", { class: "forced" },
      make("p", {}, "Had ", who, " looked only at ", name(trace.source, sourceWord), ", the model would have said:"),
      make("p", { class: "said", lang: trace.target.language, dir: trace.target.direction }, text || "nothing"),
      make("p", { class: "message" }, "log p of the answer shown: ", make("span", { class: "number" }, number(before)),
        " → ", make("span", { class: "number" }, number(after))));
  }
}
