/* The form that starts a training: files to drop, the name of the model, and how it is trained. */

import { make } from "../look/drawing.js";
import { makeChoice } from "../look/panels.js";
import { makeDrop, makeField, makeForm, makeProblem, makeSelect } from "./parts.js";

const ACCEPT = ".tsv,.txt,.csv,.jsonl,.ndjson,.json,.gz,text/*";
const HINTS = {
  translate: "Drop a .tsv or .jsonl of sentence pairs here, or two parallel texts, or choose them.",
  classify: "Drop a .tsv or .jsonl of texts and labels here, or choose one.",
};

export function makeTrainingForm({ api, started }) {
  const state = { task: "translate", files: [], dev: [], recipes: {} };
  const problem = makeProblem();
  const note = make("p", { class: "hint" });
  const input = (more) => make("input", { type: "text", autocomplete: "off", ...more });
  const controls = {
    name: input({ required: true, pattern: "[A-Za-z0-9][A-Za-z0-9_.\\-]{0,63}", placeholder: "my-model" }),
    minutes: input({ type: "number", min: 0.1, step: "any", value: 3 }),
    source: input({ maxlength: 20, placeholder: "en" }),
    target: input({ maxlength: 20, placeholder: "mr" }),
    reverse: make("input", { type: "checkbox" }),
    settings: make("textarea", { rows: 3, placeholder: "training.epochs=5" }),
    recipe: makeSelect("recipe", [["", "default"]], ""),
  };
  const submit = make("button", { type: "submit", class: "button primary" }, "Start");
  const data = makeDrop({
    title: "Training data", hint: HINTS.translate, accept: ACCEPT, take: (files) => take(files),
  });
  const dev = makeDrop({
    title: "Validation data (optional)", hint: "Else a part of the training data is set aside.", accept: ACCEPT,
    take: (files) => (state.dev = files),
  });
  const tasks = make("div", { class: "wide" });
  const languages = [makeField("From (language code)", controls.source), makeField("To", controls.target)];
  const element = make("form", { class: "form", submit: (event) => (event.preventDefault(), start()) },
    make("div", { class: "wide" }, note), tasks, data.element, dev.element,
    makeField("Name of the model", controls.name), makeField("Minutes", controls.minutes, "Empty: while dev improves."),
    languages, makeField("Recipe", controls.recipe),
    make("label", { class: "choice" }, controls.reverse, "from the second column to the first"),
    make("details", { class: "wide" }, make("summary", {}, "Settings of the recipe"),
      makeField("One per line: KEY=VALUE", controls.settings)),
    make("div", { class: "wide" }, submit, problem.element));

  function take(files) {
    state.files = files;
    if (controls.name.value) return;
    const stem = files[0].name.replace(/\.(gz|tsv|txt|csv|jsonl|ndjson|json)\b/g, "");
    controls.name.value = stem.replace(/[^A-Za-z0-9_.-]+/g, "-").slice(0, 60);
  }

  function showTask() {
    const both = [["translate", "translate"], ["classify", "classify"]];
    tasks.replaceChildren(makeChoice("The model shall", "task", both, state.task, (task) => {
      state.task = task;
      showTask();
    }));
    const translates = state.task === "translate";
    languages.forEach((field) => (field.hidden = !translates));
    controls.reverse.parentElement.hidden = !translates;
    if (!state.files.length) data.element.lastChild.textContent = HINTS[state.task];
    const options = [["", "default"], ...(state.recipes[state.task] ?? []).map((name) => [name, name])];
    controls.recipe.replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
  }

  /** What the server allows at present. */
  function show({ active, refusal, recipes }) {
    state.recipes = recipes;
    note.textContent = refusal ?? (active
      ? `${active} is running: one training at a time.`
      : "The files stay on the computer of this server. The training is a process of its own; you may close the page.");
    submit.disabled = Boolean(refusal || active);
    showTask();
  }

  async function start() {
    if (!state.files.length) return problem.show("Training data: expected a file.");
    const translates = state.task === "translate";
    const form = makeForm({
      files: state.files, dev: state.dev, name: controls.name.value, task: state.task,
      recipe: controls.recipe.value || null, minutes: controls.minutes.value || null,
      source: (translates && controls.source.value) || null, target: (translates && controls.target.value) || null,
      reverse: translates && controls.reverse.checked, settings: controls.settings.value || null,
    });
    submit.disabled = true;
    try {
      const run = await api.post("/api/studio/training", form, { key: "training" });
      Object.assign(state, { files: [], dev: [] });
      controls.name.value = "";
      data.clear();
      dev.clear();
      problem.show(null);
      started(run);
    } catch (error) {
      submit.disabled = false;
      problem.show(error);
    }
    return undefined;
  }

  return { element, show };
}
