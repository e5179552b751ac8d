/* One training: how far it is, its curves, the samples of its validations, and its attention from one to the next. */

import { number } from "../look/data.js";
import { make } from "../look/drawing.js";
import { makeExplorer } from "../look/explorer.js";
import { makeCurve } from "../look/time.js";
import { makeProgress, section, sideways } from "./parts.js";

const MAX_POINTS = 400; /* of a curve; of more, some are left out */
const MAX_SAMPLES = 50;
const MAX_MESSAGES = 50;

export function makeRun(name, { api, problem, announce, changed, finished }) {
  const path = `/api/studio/training/${encodeURIComponent(name)}`;
  const state = { status: null, updates: [], validations: [], messages: [], now: null };
  let source = null;
  let explorer = null;
  let drawing = false;
  const progress = makeProgress("Progress of the training");
  const button = (text, click) => make("button", { type: "button", class: "button", click }, text);
  const stop = button("Stop", () => act("stop"));
  const resume = button("Resume", () => act("resume"));
  const facts = make("div", { class: "run-facts", role: "status" });
  const command = make("details", { class: "command" }, make("summary", {}, "Command"), make("code", {}));
  const messages = make("details", { class: "command" }, make("summary", {}, "Messages"), make("ul", {}));
  const curveOf = (title, key, digits, entries) =>
    ({ curve: makeCurve(title, key, digits, (index) => pick(entries()[index].update)), entries });
  const curves = [
    curveOf("Training loss", "loss", 3, () => state.shownUpdates),
    curveOf("Loss on dev", "dev_loss", 3, () => state.validations),
    curveOf("Score on dev", "shown_score", 1, () => state.validations),
  ];
  const curveSection = make("div", { class: "curves" }, curves.map(({ curve }) => curve.element));
  const samples = make("tbody", {});
  const sampleHead = make("tr", {});
  const sampleSection = section("A sentence of dev at each validation",
    sideways("Samples", make("table", { class: "samples" }, make("thead", {}, sampleHead), samples)));
  const history = make("div", { class: "history" });
  const historySection = section("Where it looked, from validation to validation", history);
  const element = make("div", { class: "run" },
    make("div", { class: "panel run-head" }, facts, progress.element,
      make("div", { class: "choices foot" }, stop, resume), messages, command),
    curveSection, historySection, sampleSection);
  [curveSection, historySection, sampleSection].forEach((part) => (part.hidden = true));
  const observer = new ResizeObserver(() => draw());
  observer.observe(curveSection);

  function begin() {
    source = new EventSource(`${path}/events`);
    const on = (event, call) => source.addEventListener(event, ({ data }) => call(JSON.parse(data)));
    on("status", showStatus);
    on("restart", () => Object.assign(state, { updates: [], validations: [], messages: [] }));
    on("entries", take);
    on("end", () => source.close());
  }

  async function act(what) {
    try {
      showStatus(await api.post(`${path}/${what}`, {}));
      problem.show(null);
      if (source.readyState === EventSource.CLOSED) begin();
      changed();
    } catch (error) {
      problem.show(error);
    }
  }

  function showStatus(status) {
    const before = state.status;
    state.status = status;
    const live = status.state === "running" || status.state === "stopping";
    progress.element.hidden = !live;
    if (live) progress.show(status.fraction || null, (status.activity ?? "").replace(/ {2,}/g, " · "));
    stop.hidden = status.state !== "running";
    resume.hidden = !status.resumable;
    command.hidden = !status.command;
    command.lastChild.textContent = status.command ?? "";
    showFacts();
    if (!before || before.state === status.state) return;
    announce(`${name}: ${status.state}`);
    changed();
    if (status.state === "finished") finished();
    if (!live) showHistory();
  }

  function showFacts() {
    const { status, updates, validations } = state;
    const words = {
      running: "is running", stopping: "writes a checkpoint", finished: "has finished", failed: "failed",
      stopped: "is stopped; it can be resumed", unfinished: "has not finished",
    }[status.state];
    const better = (one, other) => (other.shown_score > (one?.shown_score ?? -Infinity) ? other : one);
    const best = validations.reduce(better, null);
    const update = updates.at(-1)?.update ?? validations.at(-1)?.update;
    const parts = [
      update && `update ${update.toLocaleString("en")}`,
      best && `best ${best.scoreName} ${number(best.shown_score, 1)} at update ${best.update.toLocaleString("en")}`,
    ].filter(Boolean);
    facts.replaceChildren(make("strong", {}, name), ` ${words}`, parts.length ? ` · ${parts.join(" · ")}` : "",
      status.failure ? make("p", { class: "problem-line" }, status.failure) : "",
      state.messages.length && status.state !== "finished" ? make("p", { class: "hint" }, state.messages.at(-1)) : "");
    messages.hidden = !state.messages.length;
    messages.lastChild.replaceChildren(...state.messages.map((text) => make("li", {}, text)));
  }

  function take(entries) {
    const before = state.validations.length;
    for (const entry of entries) {
      if (entry.kind === "update") state.updates.push(entry);
      if (entry.kind === "validation") state.validations.push(scored(entry));
      if (entry.kind === "message") state.messages = [...state.messages, entry.text].slice(-MAX_MESSAGES);
    }
    if (state.status) showFacts();
    draw();
    if (state.validations.length === before) return;
    showSamples();
    showHistory();
  }

  /** A validation with the score that people know, and its name. */
  function scored(entry) {
    const [score, scoreName] = entry.chrf !== undefined ? [entry.chrf, "chrF++"]
      : entry.accuracy !== undefined ? [entry.accuracy, "accuracy"] : [entry.score, "score"];
    return { ...entry, dev_loss: entry.dev_loss ?? null, shown_score: score, scoreName };
  }

  function draw() {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      const step = Math.ceil(state.updates.length / MAX_POINTS);
      state.shownUpdates = state.updates.filter((_, place) => place % step === 0 || place === state.updates.length - 1);
      curveSection.hidden = !state.updates.length && !state.validations.length;
      for (const { curve, entries } of curves) {
        const points = entries();
        curve.element.hidden = !points.length;
        if (points.length) curve.show(points, nearest(points, state.now));
      }
    });
  }

  /** Show the attention at the validation that is nearest to an update. */
  function pick(update) {
    if (!explorer) return;
    explorer.time.player.stop();
    explorer.time.player.go(nearest(explorer.content.moments, update) + 1);
  }

  /** The curves follow the slider; at its end, what comes. */
  function follow() {
    const { moments } = explorer.content;
    const { moment } = explorer.state;
    state.now = moment < moments.length - 1 ? moments[moment].update : null;
    draw();
  }

  function showSamples() {
    const labelled = state.validations.some(({ label }) => label !== undefined);
    const texts = labelled ? ["Text", "Label", "Expected"] : ["Source", "Translation", "Reference"];
    const names = ["Update", state.validations[0].scoreName, ...texts];
    sampleHead.replaceChildren(...names.map((each) => make("th", { scope: "col" }, each)));
    const text = (words) => make("td", { dir: "auto" }, words ?? "");
    const numeral = (value) => make("td", { class: "number" }, value);
    samples.replaceChildren(...state.validations.slice(-MAX_SAMPLES).reverse().map((each) => make("tr", {},
      numeral(each.update.toLocaleString("en")), numeral(number(each.shown_score, 1)),
      text(each.source), text(each.label ?? each.translation), text(each.expected ?? each.reference))));
    sampleSection.hidden = false;
  }

  async function showHistory() {
    const isEarlier = explorer && explorer.state.moment < explorer.content.moments.length - 1;
    if (isEarlier) return; /* somebody looks at it */
    try {
      const { content } = await api.get(`${path}/history`, { key: "history" });
      if (!content) return;
      historySection.hidden = false;
      if (explorer) return void explorer.show(content);
      explorer = makeExplorer(content, { without: ["keys"], onTrace: () => explorer && follow() });
      history.replaceChildren(explorer.element);
      explorer.render();
    } catch (error) {
      problem.show(error);
    }
  }

  function destroy() {
    source?.close();
    observer.disconnect();
    explorer?.destroy();
  }

  return { name, element, begin, destroy };
}

/** The place of the entry that is nearest to an update; null: the last one. */
function nearest(entries, update) {
  if (update === null) return entries.length - 1;
  const distances = entries.map((entry) => Math.abs(entry.update - update));
  return distances.indexOf(Math.min(...distances));
}
