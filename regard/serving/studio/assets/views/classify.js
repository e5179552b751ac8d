/* Classify: the label of a text while it is typed, the words that decided, the model's card and its mistakes. */

import { number } from "../../look/data.js";
import { make } from "../../look/drawing.js";
import { makeExplorer } from "../../look/explorer.js";
import { makeCard, makeConfusion } from "../../look/panels.js";
import { debounced, makeDrop, makeForm, makeProblem, section, sideways } from "../parts.js";

export const title = "Classify";
export const task = "classify";
export const available = (models) => models.some((model) => model.task === "classify");
export const hint = "Start the studio with a classifier: regard train DATA --task classify --out MODEL trains one.";

const PAUSE = 250; /* ms without a key until the text is classified */
const SHOWN_LABELS = 12;

export async function mount(element, { api, model, parameters, replace, announce }) {
  let explorer = null;
  let evidence = false;
  const problem = makeProblem();
  const text = make("textarea", {
    rows: 4, "aria-label": "Text", placeholder: "Type or paste a text", dir: "auto",
    input: debounced(() => classify(), PAUSE),
  }, parameters.get("text") ?? "");
  const answer = make("div", { class: "answer", "aria-live": "polite" });
  const test = make("button", { type: "button", class: "button", hidden: true, click: () => classify(true) },
    "Test the words");
  const words = make("div", { class: "words" });
  const quality = make("div", {});
  element.append(
    make("div", { class: "two" }, make("div", { class: "panel" }, text), make("div", { class: "panel" }, answer)),
    problem.element, words, quality);

  async function classify(tested = false) {
    evidence = tested;
    replace({ text: text.value || null });
    if (!text.value.trim()) return show(null);
    try {
      const body = { text: text.value, model: model.name, evidence };
      show(await api.post("/api/studio/classify", body, { key: "classify" }));
      problem.show(null);
    } catch (error) {
      problem.show(error);
    }
  }

  function show(result) {
    test.hidden = !result?.content;
    answer.replaceChildren(...(result ? labels(result) : [make("p", { class: "hint" }, "The label appears here.")]));
    if (!result?.content) {
      words.hidden = true;
      return;
    }
    announce(`${result.label}, ${number(100 * result.probabilities[0][1], 0)} percent`);
    words.hidden = false;
    if (explorer) explorer.show(result.content);
    else {
      explorer = makeExplorer(result.content, { without: ["below", "steps", "keys"] });
      const why = "Each word is left out once, and gradients are taken: what matters, whatever the attention says.";
      words.append(section("The words that decided", explorer.element,
        make("p", { class: "hint foot" }, test, " ", why)));
      explorer.render();
    }
    if (evidence) explorer.choose({ evidence: 0 });
  }

  function labels({ probabilities, calibrated }) {
    const rows = probabilities.slice(0, SHOWN_LABELS).map(([name, probability], index) =>
      make("li", { class: index ? null : "chosen" }, make("span", { dir: "auto" }, name),
        make("i", { style: { "--probability": probability } }),
        make("span", { class: "number" }, `${number(100 * probability, 1)} %`)));
    const more = probabilities.length - SHOWN_LABELS;
    const note = calibrated ? "Calibrated on the validation data." : "Not calibrated: the training has not ended.";
    return [
      make("p", { class: "label", dir: "auto" }, probabilities[0][0]),
      make("ol", { class: "bars labels" }, rows),
      make("p", { class: "hint" }, more > 0 ? `${more} less probable labels are left out. ${note}` : note),
    ];
  }

  await showQuality(quality, api, model, (chosen) => {
    text.value = chosen;
    text.focus();
    window.scrollTo({ top: 0 });
    classify();
  });
  show(null);
  await classify();
  return () => explorer?.destroy();
}

/** The card with the scores on the validation data, and the same for a test set that is dropped. */
async function showQuality(element, api, model, choose) {
  const { card, scores } = await api.get(`/api/studio/classify/card?model=${encodeURIComponent(model.name)}`);
  const problem = makeProblem();
  const tested = make("div", { "aria-live": "polite" });
  const drop = makeDrop({
    title: "Score it on a test set", hint: "Drop a .tsv or .jsonl of texts and labels here, or choose one.",
    accept: ".tsv,.txt,.csv,.jsonl,.ndjson,.json,.gz",
    take: async (files) => {
      tested.replaceChildren(make("p", { class: "hint" }, "Classifying …"));
      try {
        const form = makeForm({ files, model: model.name });
        const result = await api.post("/api/studio/classify/evaluate", form, { key: "evaluate" });
        tested.replaceChildren(...scoreParts(result.scores), mistakesPart(result, choose));
        problem.show(null);
      } catch (error) {
        tested.replaceChildren();
        problem.show(error);
      }
    },
  });
  element.append(
    section("How good is it?", make("div", { class: "below" },
      makeCard({ lines: card.lines, confusion: scores ? null : card.confusion }),
      scores && make("section", { "aria-label": "Scores" }, scoreParts(scores, "on the validation data")))),
    section("A test set of your own", drop.element, problem.element, tested));
}

function scoreParts(scores, where = "") {
  const head = ["label", "precision", "recall", "F1", "texts"].map((name) => make("th", { scope: "col" }, name));
  const rows = scores.by_label.map(({ label, precision, recall, f1, texts }) => make("tr", {},
    make("th", { scope: "row", dir: "auto" }, label),
    [precision, recall, f1].map((value) => make("td", { class: "number" }, number(value, 1))),
    make("td", { class: "number" }, texts.toLocaleString("en"))));
  const accuracy = `accuracy ${number(scores.accuracy, 1)} % ± ${number(scores.standard_error, 1)}`;
  const rest = `macro-F1 ${number(scores.macro_f1, 1)} · log loss ${number(scores.log_loss, 3)}`;
  return [
    make("p", {}, make("strong", {}, accuracy), ` · ${rest}, ${scores.texts.toLocaleString("en")} texts ${where}`),
    makeConfusion({ labels: scores.labels, counts: scores.confusion }),
    sideways(`Scores of each label ${where || "of the test set"}`, make("table", { class: "by-label" },
      make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows))),
  ];
}

function mistakesPart({ mistakes, scores }, choose) {
  if (!mistakes.length) return make("p", { class: "hint" }, "Every text has its expected label.");
  const items = mistakes.map(({ text, expected, predicted, probability }) => make("li", {},
    make("button", { type: "button", click: () => choose(text) }, make("span", { dir: "auto" }, text),
      make("span", { class: "what" }, `${predicted} ${number(100 * probability, 0)} %, expected ${expected}`))));
  const total = scores.texts - scores.labels.reduce((sum, _, place) => sum + scores.confusion[place][place], 0);
  const note = mistakes.length < total ? `The ${mistakes.length} surest of ${total} mistakes`
    : `${total} mistakes, the surest first`;
  return make("div", {}, make("h3", {}, note), make("ul", { class: "rows" }, items));
}
