/* Corpus: a test set is translated, its sentences are sorted by what is odd about them, looked into and corrected. */

import { number } from "../../look/data.js";
import { make } from "../../look/drawing.js";
import { makeDrop, makeForm, makeProblem, makeProgress, makeSelect, percent } from "../parts.js";
import { makeSentence } from "../sentence.js";

export const title = "Corpus";
export const task = "translate";
export const available = (models) => models.some((model) => model.task === "translate");
export const hint = "Start the studio with a translator: regard train PAIRS --out MODEL trains one.";

const POLL = 400; /* ms between two questions how far it is */
const PAGE = 50; /* rows that are shown at a time */
let lastJob = null; /* the test set that was looked at, for when the view is shown again */

/** name → [title, value that small comes first; null: last]. */
const ORDERS = {
  file: ["order of the file", (row) => row.number],
  score: ["chrF++, lowest first", (row) => row.score],
  confidence: ["confidence, lowest first", (row) => row.confidence],
  entropy: ["entropy of the attention, highest first", (row) => (row.entropy === null ? null : -row.entropy)],
  coverage: ["coverage, lowest first", (row) => row.coverage],
  missed: ["suspected omissions", (row) => -row.missed.length],
  repeated: ["suspected repetitions", (row) => -row.repeated.length],
};

export function sorted(rows, order) {
  const [, value] = ORDERS[order];
  const key = (row) => value(row) ?? Infinity;
  return [...rows].sort((one, other) => key(one) - key(other) || one.number - other.number);
}

export function mount(element, { api, model, parameters, replace, announce, download, signal }) {
  const state = { job: null, rows: [], order: parameters.get("sort") ?? "file", filter: "", shown: PAGE, open: null };
  if (!(state.order in ORDERS)) state.order = "file";
  const problem = makeProblem();
  const progress = makeProgress("Translated sentences");
  const cancel = make("button", { type: "button", class: "button", click: () => stop() }, "Cancel");
  const scores = make("p", { class: "scores", "aria-live": "polite" });
  const confidence = make("input", { type: "checkbox", checked: true });
  const reverse = make("input", { type: "checkbox" });
  const drop = makeDrop({
    title: "Load a test set", hint: "Drop a .tsv or .jsonl of pairs here, or two parallel texts, or choose them.",
    accept: ".tsv,.txt,.csv,.jsonl,.ndjson,.json,.gz,text/*", take: (files) => load(files),
  });
  const status = make("div", { class: "status", hidden: true }, progress.element, cancel);
  const list = make("div", {});
  const detail = make("div", { hidden: true });
  const body = make("tbody", {});
  const more = make("button", { type: "button", class: "button", click: () => ((state.shown += PAGE), showRows()) });
  const controls = make("div", { class: "choices" },
    make("label", { class: "choice" }, make("span", { class: "what" }, "Sort by"),
      makeSelect("sort", Object.entries(ORDERS).map(([name, [words]]) => [name, words]), state.order, (order) => {
        Object.assign(state, { order, shown: PAGE });
        replace({ sort: order === "file" ? null : order });
        showRows();
      })),
    make("label", { class: "choice" }, make("span", { class: "what" }, "Only with"),
      make("input", { type: "search", "aria-label": "Only sentences with this text", input: (event) => {
        Object.assign(state, { filter: event.target.value.trim().toLowerCase(), shown: PAGE });
        showRows();
      } })));
  const names = ["No.", "Source and translation", "chrF++", "Confidence", "Entropy", "Coverage"];
  list.append(controls, make("table", { class: "corpus" }, make("thead", {}, make("tr", {}, names.map((name) =>
    make("th", { scope: "col" }, name)))), body), more);
  list.hidden = true;
  const loading = make("div", { class: "panel" }, drop.element, make("div", { class: "choices foot" },
    model.confidence ? make("label", { class: "choice" }, confidence, "with confidence (slower)") : null,
      make("label", { class: "choice" }, reverse, "from the second column to the first")));
  element.append(loading, problem.element, status, scores, list, detail);

  const sentence = makeSentence({ api, download, problem, close: () => open(null), move: (step) => move(step) });
  detail.append(sentence.element);

  async function load(files) {
    try {
      problem.show(null);
      const form = makeForm({ files, model: model.name, reverse: reverse.checked, confidence: confidence.checked });
      const job = await api.post("/api/studio/corpus", form, { key: "corpus" });
      Object.assign(state, { job, rows: [], shown: PAGE });
      open(null);
      scores.replaceChildren();
      drop.clear();
      remember(job.id);
      follow(job.id);
    } catch (error) {
      problem.show(error);
    }
  }

  function remember(id) {
    lastJob = id;
    replace({ job: id });
  }

  /** Show a test set again, if the server still has it. */
  async function again(id) {
    try {
      const job = await api.get(`/api/studio/corpus/${encodeURIComponent(id)}`);
      Object.assign(state, { job, rows: [] });
      remember(id);
      follow(id);
    } catch (error) {
      if (error.status === 404) remember(null);
      else problem.show(error);
    }
  }

  async function follow(id) {
    while (!signal.aborted && state.job?.id === id) {
      try {
        const job = await api.get(`/api/studio/corpus/${id}?first=${state.rows.length}`);
        if (state.job?.id !== id) return;
        state.job = job;
        const before = state.rows.length;
        state.rows.push(...job.rows);
        showProgress();
        if (state.rows.length !== before) showRows();
        if (job.state !== "running") return ended();
      } catch (error) {
        return problem.show(error);
      }
      await new Promise((done) => setTimeout(done, POLL));
    }
  }

  async function stop() {
    try {
      await api.post(`/api/studio/corpus/${state.job.id}/cancel`, {});
    } catch (error) {
      problem.show(error);
    }
  }

  function showProgress() {
    const { done, total, name, state: now } = state.job;
    status.hidden = false;
    cancel.hidden = now !== "running";
    const words = { running: "", done: "", cancelled: " · cancelled", failed: " · failed" }[now];
    progress.show(done / total, `${name}: ${done.toLocaleString("en")} of ${total.toLocaleString("en")}${words}`);
  }

  function ended() {
    const { state: now, error, name, total, scores: result } = state.job;
    if (error) problem.show(error);
    if (now !== "done") return;
    status.hidden = true;
    const values = [["BLEU", result.bleu], ["chrF++", result.chrf], ["TER", result.ter]]
      .map(([name, value]) => `${name} ${number(value, 1)}`);
    const missed = state.rows.filter((row) => row.missed.length).length;
    const repeated = state.rows.filter((row) => row.repeated.length).length;
    const odd = `words perhaps left out in ${missed}, repeated in ${repeated} sentences`;
    scores.replaceChildren(`${name}, ${total.toLocaleString("en")} sentences: `,
      make("strong", {}, values.join(" · ")), ` · exact ${number(result.exact, 1)} % · ${odd}`);
    announce(`${state.rows.length} sentences are translated`);
  }

  const chosen = () => sorted(state.rows, state.order).filter(({ source, translation, references }) =>
    !state.filter || [source, translation, ...references].some((text) => text.toLowerCase().includes(state.filter)));

  function showRows() {
    const rows = chosen();
    list.hidden = !state.rows.length || state.open !== null;
    body.replaceChildren(...rows.slice(0, state.shown).map(makeRow));
    more.hidden = rows.length <= state.shown;
    more.textContent = `Show ${Math.min(PAGE, rows.length - state.shown)} more of ${rows.length.toLocaleString("en")}`;
  }

  function makeRow(row) {
    const cell = (name, value, low) =>
      make("td", { class: `number${low ? " low" : ""}`, "data-name": name }, value);
    const chips = [
      ...row.missed.map((word) => ["left out?", word]), ...row.repeated.map((word) => ["repeated?", word]),
    ];
    return make("tr", {},
      make("td", { class: "number faint" }, row.number + 1),
      make("td", { class: "texts-of-row" },
        make("button", { type: "button", click: () => open(row) },
          make("span", { dir: "auto" }, row.source || "(empty)")),
        make("span", { dir: "auto", class: "translation" }, row.translation || "(nothing)"),
        chips.length ? make("span", { class: "chips" }, chips.map(([name, word]) =>
          make("span", { class: "chip" }, `${name} `, make("b", { dir: "auto" }, word)))) : null),
      cell("chrF++", number(row.score, 0), row.score < 40),
      cell("confidence", percent(row.confidence), row.confidence !== null && row.confidence < 0.5),
      cell("entropy", row.entropy === null ? "–" : number(row.entropy, 2)),
      cell("coverage", row.coverage === null ? "–" : number(row.coverage, 2),
        row.coverage !== null && row.coverage < state.job.thresholds.missed));
  }

  /** Show one sentence, or the list again. */
  function open(row) {
    const before = state.open;
    state.open = row;
    detail.hidden = row === null;
    loading.hidden = row !== null;
    list.hidden = !state.rows.length || row !== null;
    if (row) sentence.show(state.job, row, model);
    else if (before) {
      const buttons = [...body.querySelectorAll("button")];
      buttons.find((button) => button.textContent === before.source)?.focus();
    }
  }

  function move(step) {
    const rows = chosen();
    const next = rows[rows.findIndex(({ number: each }) => each === state.open.number) + step];
    if (next) open(next);
  }

  const before = parameters.get("job") ?? lastJob;
  if (before) again(before);
  return () => sentence.destroy();
}
