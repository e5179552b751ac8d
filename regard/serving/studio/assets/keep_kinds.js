/* The kinds of things that are not translated. */

import { make } from "../look/drawing.js";

const KINDS = [["numbers", "Numbers"], ["addresses", "Addresses"], ["markup", "Markup"], ["names", "Names"]];

/** `change()` whenever the chosen kinds are others; the chosen ones: `kinds()`. */
export function makeKeepKinds(change) {
  const inputs = KINDS.map(([kind]) => make("input", { type: "checkbox", value: kind, change }));
  const labels = KINDS.map(([, name], index) => make("label", { class: "check" }, inputs[index], name));
  const element = make("details", { class: "panel" }, make("summary", {}, "Not translated"),
    make("div", { class: "row" }, labels));
  return { element, kinds: () => inputs.filter((input) => input.checked).map((input) => input.value) };
}
