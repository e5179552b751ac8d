/* Translate: two panes; what the words looked at, what else could stand there, other translations, a glossary. */

import { attentionPicture, number, range } from "../../look/data.js";
import { listed, make } from "../../look/drawing.js";
import { textOf } from "../../look/panels.js";
import { showSummary, spokenSummary } from "../../look/texts.js";
import { isSuperseded } from "../api.js";
import { makeGlossary } from "../glossary.js";
import { makeKeepKinds } from "../keep_kinds.js";
import { directionOf, languageName } from "../languages.js";
import { makeNBest } from "../n_best.js";
import { showNextWords } from "../next_words.js";
import { makeOutputPane } from "../output_pane.js";
import { makeSourcePane } from "../source_pane.js";

export const title = "Translate";
export const task = "translate";
export const hint = "This view needs a translator: regard train PAIRS --out MODEL, then regard studio MODEL.";
export const available = (models) => models.some((model) => model.task === task);

const PAUSE = 220; /* milliseconds without typing before the details are asked for */
const MAX_CHARACTERS = 10_000;
const LONG = 400; /* characters from which the letters are smaller */
const MAX_NAMED = 12; /* words that may be left out, in the line that names them */
const CHOICE = { attention: 0, layer: -1, head: -1, level: "words" };

export function mount(element, context) {
  const view = new TranslateView(element, context);
  return () => view.end();
}

class TranslateView {
  constructor(element, context) {
    this.context = context;
    [this.from, this.to] = context.model.languages ?? [null, null];
    this.lines = []; /* {text, confidence, segments: [{trace, coverage, candidates, prefix, target, fixed}]} */
    this.chosen = 0; /* the segment whose other translations are listed */
    this.running = false; /* whether a request for the text alone is under way */
    this.timer = null;
    this.build(element);
    if (this.source.text()) this.typed();
    else this.source.area.focus({ preventScroll: true });
  }

  build(element) {
    const { parameters } = this.context;
    this.source = makeSourcePane({
      text: parameters.get("text") ?? "", language: this.from, direction: directionOf(this.from), limit: MAX_CHARACTERS,
      change: () => this.typed(), point: (segment, word) => this.point(segment, -1, word),
    });
    this.undo = make("button", { type: "button", class: "button plain", click: () => this.translateWithDetails() }, "Undo");
    this.copy = make("button", { type: "button", class: "button plain", click: () => this.copyText() }, "Copy");
    this.share = make("button", { type: "button", class: "button plain", click: () => this.shareText() }, "Share");
    this.look = make("button", { type: "button", class: "button plain", click: () => this.lookAt() }, "Look");
    this.output = makeOutputPane({
      language: this.to, direction: directionOf(this.to), actions: [this.undo, this.look, this.copy, this.share],
      point: (segment, word) => this.point(segment, word, -1), press: (...place) => this.openWord(...place),
    });
    this.message = make("p", { class: "message", role: "status" });
    this.summary = make("p", { class: "summary" });
    this.glossary = makeGlossary({ languages: this.context.model.languages, change: () => this.typed() });
    this.keep = makeKeepKinds(() => this.typed());
    this.others = makeNBest({
      languages: [this.from, this.to], direction: directionOf(this.to),
      choose: (text) => this.redo(this.chosen, { target: text, prefix: "", fixed: 0 }),
    });
    this.panes = make("div", { class: "panes" }, this.source.element, this.output.element);
    element.append(
      this.languages(), this.panes, this.message, this.summary, make("div", { class: "columns" }, this.others.element,
        make("div", { class: "stack" }, this.glossary.element, this.keep.element)));
    this.showLines();
  }

  languages() {
    const { models, model } = this.context;
    const back = models.find(({ task: own, languages }) =>
      own === task && this.from && languages && languages[0] === this.to && languages[1] === this.from);
    const swap = make("button", {
      type: "button", class: "button", "aria-label": "Swap the languages", disabled: !back,
      title: back ? null : "No model that is loaded translates back.",
      click: () => this.context.navigate("translate", { text: this.text(), model: back.name }),
    }, "⇄");
    const name = (code, other) => (code ? languageName(code) : other);
    return make("div", { class: "languages" }, make("h1", { class: "hidden" }, title),
      make("p", { class: "heading" }, name(this.from, model.name)), swap,
      make("p", { class: "heading" }, name(this.to, "Translation")));
  }

  end() {
    clearTimeout(this.timer);
    this.closeWord?.();
  }

  /* Translating */

  get options() {
    return { model: this.context.model.name, glossary: this.glossary.terms(), keep: this.keep.kinds() };
  }

  text() {
    return this.lines.map((line) => line.text).join("\n");
  }

  segments() {
    return this.lines.flatMap((line) => line.segments);
  }

  /** The text alone at once, and when nothing is typed for a moment, the details. */
  typed() {
    this.closeWord?.();
    this.panes.classList.toggle("long", this.source.text().length > LONG);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.translateWithDetails(), PAUSE);
    if (this.running) this.waiting = true;
    else this.translate();
  }

  async translate() {
    const text = this.source.text();
    if (!text.trim()) return this.showNothing();
    this.running = true;
    this.waiting = false;
    this.output.element.classList.add("busy");
    try {
      const { lines } = await this.context.api.post("/api/studio/translate", { ...this.options, text });
      if (this.source.text().trim() && !this.detailed(text)) {
        this.lines = lines.map((line) => ({ ...line, segments: [] }));
        this.showLines();
      }
      this.message.replaceChildren();
    } catch (error) {
      this.report(error);
    } finally {
      this.running = false;
      this.output.element.classList.remove("busy");
    }
    return this.waiting ? this.translate() : null;
  }

  /** Whether the details of this very text are shown already. */
  detailed(text) {
    return this.detailsOf === JSON.stringify([this.options, text]);
  }

  async translateWithDetails() {
    const text = this.source.text();
    this.context.replace({ text: text.length <= 1500 ? text : null });
    if (!text.trim()) return;
    try {
      const asked = this.options;
      const request = { ...asked, text, details: true };
      const answer = await this.context.api.post("/api/studio/translate", request, { key: "details" });
      if (text !== this.source.text()) return;
      this.detailsOf = JSON.stringify([asked, text]);
      this.take(answer);
      this.context.announce(`Translation: ${this.text()}`);
    } catch (error) {
      this.report(error);
    }
  }

  take({ lines, content, coverage, notices }) {
    const traces = content.traces[0];
    let next = 0;
    this.lines = lines.map((line) => ({
      ...line,
      segments: range(line.segments).map(() => {
        const trace = traces[next];
        next += 1;
        const { candidates } = trace;
        return { trace, coverage: coverage[next - 1], candidates, prefix: "", target: null, fixed: 0 };
      }),
    }));
    this.chosen = Math.min(this.chosen, Math.max(next - 1, 0));
    this.message.className = "message";
    this.message.replaceChildren(notices.join(" · "));
    this.showLines();
  }

  showNothing() {
    this.lines = [];
    this.detailsOf = null;
    this.message.replaceChildren();
    this.showLines();
  }

  report(error) {
    if (isSuperseded(error)) return;
    this.message.className = "message problem";
    this.message.replaceChildren(error.message);
  }

  /* Showing */

  showLines() {
    const segments = this.segments();
    if (segments.length) {
      this.output.showWords(this.lines);
      this.source.showWords(segments);
    } else this.output.showPlain(this.lines.map((line) => line.text));
    [this.copy, this.share, this.look].forEach((button) => (button.disabled = !this.text()));
    this.share.disabled = !segments.length;
    this.undo.hidden = !segments.some(({ prefix, target }) => prefix || target !== null);
    this.pointed = null;
    this.showNote(segments);
    this.showOthers();
    this.showSummary(null);
  }

  showNote(segments) {
    const values = segments.flatMap(({ trace }) => trace.confidence);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const words = segments.flatMap(({ trace, coverage }) => coverage.missed.map((word) => trace.source.words[word]));
    const missed = [...new Set(words)];
    const scale = make("span", { class: "legend", "aria-hidden": "true" }, "sure",
      make("i", { style: { "--stops": listed("--against").join(", ") } }), "unsure");
    this.output.note.replaceChildren(...(values.length ? [`Confidence ${number(mean)} `, scale] : []));
    if (!missed.length) return;
    const named = missed.slice(0, MAX_NAMED).join(", ") + (missed.length > MAX_NAMED ? ", …" : "");
    this.message.append(this.message.textContent ? " · " : "", `May be left out: ${named}`);
  }

  /** Light what the word pointed at looks at: `row` of the target, or `column` of the source. */
  point(segment, row = -1, column = -1) {
    const place = `${segment} ${row} ${column}`;
    if (place === this.pointed) return null;
    this.pointed = place;
    const trace = segment === null ? null : this.segments()[segment]?.trace;
    if (!trace) {
      this.source.light(0, null, 1);
      this.output.light(0, null, 1);
      return this.showSummary(null);
    }
    const shown = attentionPicture(trace, CHOICE);
    const looks = row >= 0 ? range(shown.width).map((place) => shown.at(row, place)) : null;
    const lookers = column >= 0 ? range(shown.height).map((place) => shown.at(place, column)) : null;
    this.source.light(segment, looks, shown.top, column);
    this.output.light(segment, lookers, shown.top, row);
    return this.showSummary(shown, { row, column });
  }

  showSummary(shown, focus) {
    if (!shown) {
      const hint = this.segments().length
        ? "Point at a word to see what belongs together. Click a word of the translation for others."
        : "";
      this.summary.replaceChildren(make("span", { class: "hint" }, hint));
      return;
    }
    showSummary(this.summary, shown, focus, null);
    this.context.announce(spokenSummary(shown, focus));
  }

  /** The other translations of the segment that was clicked last. */
  showOthers() {
    const segments = this.segments();
    this.others.show(segments[this.chosen], segments.length > 1);
  }

  /* Other words */

  async openWord(index, word, element) {
    this.closeWord?.();
    const segment = this.segments()[index];
    if (this.chosen !== index) {
      this.chosen = index;
      this.showOthers();
    }
    const { target } = segment.trace;
    const first = target.groups.indexOf(word);
    const prefix = target.units.slice(0, first).map(([gap, letters]) => gap + letters).join("");
    const source = textOf(segment.trace.source);
    const request = { model: this.context.model.name, source, prefix, known: textOf(target) };
    try {
      const entries = await this.context.api.post("/api/studio/next-words", request, { key: "words" });
      this.closeWord = showNextWords({
        parent: this.output.text, word: element, entries, language: this.to, direction: target.direction,
        choose: (entry) => this.useWord(index, word, prefix, entry), close: () => (this.closeWord = null),
      });
    } catch (error) {
      this.report(error);
    }
  }

  /** Decode the rest again after a word, or end the translation before it. */
  useWord(index, word, prefix, entry) {
    if (!entry.word) return this.redo(index, { target: prefix.trimEnd(), prefix: "", fixed: word });
    const start = entry.text.indexOf(entry.word, prefix.trimEnd().length);
    return this.redo(index, { target: null, prefix: entry.text.slice(0, start + entry.word.length), fixed: word + 1 });
  }

  async redo(index, changes) {
    const segment = this.segments()[index];
    const { target, prefix } = changes;
    try {
      const request = { ...this.options, source: textOf(segment.trace.source), prefix, target };
      const answer = await this.context.api.post("/api/studio/segment", request, { key: "segment" });
      const [trace] = answer.content.traces[0];
      const candidates = target === null ? trace.candidates : segment.candidates;
      Object.assign(segment, changes, { trace, coverage: answer.coverage[0], candidates });
      const line = this.lines.find(({ segments }) => segments.includes(segment));
      const texts = line.segments.map((each) => textOf(each.trace.target));
      line.text = texts.length === 1 ? answer.text : texts.join(" ");
      this.showLines();
      this.context.announce(`Translation: ${this.text()}`);
    } catch (error) {
      this.report(error);
    }
  }

  /* What can be done with it */

  async copyText() {
    try {
      await navigator.clipboard.writeText(this.text());
      this.copy.replaceChildren("Copied");
      this.context.announce("Copied");
      setTimeout(() => this.copy.replaceChildren("Copy"), 1500);
    } catch {
      this.report(new Error("The browser does not allow copying here: select the text and copy it."));
    }
  }

  async shareText() {
    const segments = this.segments().map(({ trace, prefix, target }) =>
      ({ source: textOf(trace.source), prefix, target }));
    try {
      const page = await this.context.api.postForFile("/api/studio/share", { ...this.options, segments });
      this.context.download("translation.html", page);
      this.context.announce("The page was saved");
    } catch (error) {
      this.report(error);
    }
  }

  lookAt() {
    const { model } = this.context;
    this.context.navigate("look", { text: this.source.text().trim(), model: model.name });
  }
}
