/* Parts that several views share: files to drop, fields of forms, progress, errors. */

import { make } from "../look/drawing.js";

/** A line for errors, which screen readers speak when it changes: `show(error)`, `show(null)` clears it. */
export function makeProblem() {
  const element = make("p", { class: "problem-line", role: "alert", hidden: true });
  const show = (error) => {
    if (error?.name === "AbortError") return;
    element.hidden = !error;
    element.textContent = error ? (error.message ?? String(error)) : "";
  };
  return { element, show };
}

/** A place to drop files on, or to choose them by mouse or key: `take(files)` gets one or two. */
export function makeDrop({ title, hint, accept, take }) {
  const input = make("input", {
    type: "file", class: "hidden", accept, multiple: true,
    change: () => (choose([...input.files]), (input.value = "")),
  });
  const chosen = make("span", { class: "what" }, hint);
  const element = make("label", { class: "drop" }, input, make("strong", {}, title), chosen);
  const over = (there) => element.classList.toggle("over", there);
  element.addEventListener("dragover", (event) => (event.preventDefault(), over(true)));
  element.addEventListener("dragleave", () => over(false));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    choose([...event.dataTransfer.files]);
  });

  function choose(files) {
    if (!files.length) return;
    chosen.textContent = files.map(({ name }) => name).join(" + ");
    take(files);
  }

  return { element, clear: () => (chosen.textContent = hint) };
}

/** A control with its name above it, and below it what to write there. */
export function makeField(title, control, hint = null) {
  return make("label", { class: "field" }, make("span", {}, title), control,
    hint && make("span", { class: "what" }, hint));
}

export function makeSelect(name, options, value, change = null) {
  const items = options.map(([each, text]) => make("option", { value: each, selected: each === value }, text));
  return make("select", { name, change: change && ((event) => change(event.target.value)) }, items);
}

/** Files and further fields as the body of a request; values of null are left out. */
export function makeForm(fields) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    const several = Array.isArray(value) ? value : [value];
    several.filter((each) => each !== null && each !== undefined).forEach((each) => form.append(name, each));
  }
  return form;
}

/** A bar, and in words how far it is: `show(done, total, text)`. */
export function makeProgress(label) {
  const bar = make("progress", { max: 1, value: 0, "aria-label": label });
  const text = make("span", { class: "what number" });
  const element = make("div", { class: "progress" }, bar, text);
  const show = (fraction, words) => {
    if (fraction === null) bar.removeAttribute("value");
    else bar.value = fraction;
    text.textContent = words;
  };
  return { element, show };
}

/** `call` is called when nothing more comes for a while. */
export function debounced(call, pause) {
  let timer = null;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), pause);
  };
}

export const section = (title, ...content) =>
  make("section", { class: "part", "aria-label": title }, make("h2", {}, title), content);

/** A table that is scrolled sideways where it is too wide, by keys too. */
export const sideways = (label, table) =>
  make("div", { class: "sideways", role: "region", tabindex: 0, "aria-label": label }, table);

export const percent = (value, digits = 0) => (value === null ? "–" : `${(100 * value).toFixed(digits)} %`);
