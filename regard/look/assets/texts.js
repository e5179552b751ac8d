/* The two texts as they read, and in one line of words what is pointed at. */

import { digits, number, strongest } from "./data.js";
import { fill, lettering, listed, make, tint } from "./drawing.js";

/** `point(key, index)`: which side, and which of its words or units; `press(key, word)` for a click on a word. */
export function makePair(trace, level, point, press = null) {
  const parts = { source: { words: [], units: [] }, target: { words: [], units: [] } };
  const line = (key) => {
    const side = trace[key];
    const text = make("dd", { dir: side.direction, lang: side.language });
    side.units.forEach(([gap, letters], index) => {
      const word = side.groups[index];
      const unit = make("span", { class: "part", "data-unit": index }, letters);
      const known = parts[key].words[word];
      const kind = side.terms.includes(word) ? "part term" : "part";
      parts[key].words[word] ??= make("span", { class: kind, "data-word": word });
      if (known) known.append(gap, unit);
      else text.append(gap, fill(parts[key].words[word], {}, [unit]));
      parts[key].units[index] = unit;
    });
    text.addEventListener("pointermove", (event) => {
      const part = event.target.closest(level === "words" ? "[data-word]" : "[data-unit]");
      point(key, part ? Number(level === "words" ? part.dataset.word : part.dataset.unit) : null);
    });
    text.addEventListener("pointerleave", () => point(key, null));
    text.addEventListener("click", (event) => {
      const part = event.target.closest("[data-word]");
      if (part) press?.(key, Number(part.dataset.word));
    });
    const name = side.language ? ` · ${side.language}` : "";
    const titles = trace.answer === "label" ? { source: "Text", target: "Label" } : { source: "Source", target: "Target" };
    return [make("dt", {}, titles[key] + name), text];
  };
  const long = trace.source.units.length + trace.target.units.length > 90;
  /* One answer about a text: the text itself is the picture, and is shown as a whole. */
  const kind = !long ? "pair" : trace.target.units.length === 1 ? "pair whole" : "pair long";
  const element = make("dl", { class: kind }, line("source"), line("target"), makeConfidence(trace.confidence));
  trace.confidence.forEach((value, word) =>
    parts.target.words[word]?.setAttribute("title", `confidence ${number(value)}`));

  /** Shade the words that are probably wrong; values below 0 have the colours of what speaks against. */
  function shade() {
    trace.confidence.forEach((value, word) => parts.target.words[word] && tint(parts.target.words[word], value - 1, 1));
  }

  function light(shown, rows, columns, focus) {
    const { row, column } = focus ?? { row: -1, column: -1 };
    const all = [...parts.source[level], ...parts.target[level]];
    all.forEach((part) => part && (part.classList.remove("on"), tint(part, null)));
    const tintAll = (key, value) => parts[key][level].forEach((part, index) => tint(part, value(index), shown.top));
    parts.target.words.forEach((part) => part && tint(part, null));
    if (row < 0 && column < 0) shade();
    if (row >= 0 && column < 0) tintAll(columns, (index) => shown.at(row, index));
    if (column >= 0 && row < 0) tintAll(rows, (index) => shown.at(index, column));
    if (row >= 0) parts[rows][level][row]?.classList.add("on");
    if (column >= 0) parts[columns][level][column]?.classList.add("on");
  }

  /** Units beyond the current step keep their place, except within a word that has begun. */
  function reveal(units) {
    const begun = trace.target.groups[units - 1];
    parts.target.units.forEach((part, index) => {
      part.classList.toggle("unrevealed", index >= units);
      part.classList.toggle("gone", index >= units && trace.target.groups[index] === begun);
    });
  }

  shade();
  return { element, light, reveal };
}

/** The mean confidence of the words, and what their shades mean. */
function makeConfidence(values) {
  if (!values.length) return [];
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const scale = make("span", { class: "legend", "aria-hidden": "true" }, "mean of the words · a word is right: 1",
    make("i", { style: { "--stops": listed("--against").join(", ") } }), "0");
  return [make("dt", {}, "Confidence"), make("dd", { class: "confidence" }, make("span", { class: "number" }, number(mean)), scale)];
}

/** A sentence for screen readers: "मुलगा looks 83 % at boy". */
export function spokenSummary(shown, focus) {
  const { row, column } = focus ?? { row: -1, column: -1 };
  const name = (side, index) => (index === side.end ? "the end" : side.names[index]);
  const percent = (value) => `${Math.round(100 * value)} %`;
  if (row >= 0 && column >= 0) {
    return `${name(shown.rows, row)} looks ${percent(shown.at(row, column))} at ${name(shown.columns, column)}`;
  }
  if (row < 0 && column < 0) return "";
  const [own, others] = row >= 0 ? [shown.rows, shown.columns] : [shown.columns, shown.rows];
  const parts = strongest(shown, { row, column }, 3).map(([index, value]) =>
    (row >= 0 ? `${percent(value)} at ${name(others, index)}` : `${name(others, index)} ${percent(value)}`));
  return `${name(own, row >= 0 ? row : column)} ${row >= 0 ? "looks" : "is looked at by"} ${parts.join(", ")}`;
}

/** One line: who looks at whom, and how much. */
export function showSummary(element, shown, focus, evidence) {
  const { row, column } = focus ?? { row: -1, column: -1 };
  const numeral = (value) => make("span", { class: "number" }, number(value, digits(shown)));
  const pill = (word, value) => make("span", { class: "pill" }, word, numeral(value));
  const quiet = (text) => make("span", { class: "quiet" }, text);
  if (row >= 0 && column >= 0) {
    const more = evidence ? [quiet(evidence.name), make("span", { class: "number" }, number(evidence.value))] : [];
    element.replaceChildren(
      lettering(shown.rows, row, "strong"), quiet("looks at"), lettering(shown.columns, column, "strong"),
      quiet("with"), numeral(shown.at(row, column)), ...more);
  } else if (row >= 0) {
    const pills = strongest(shown, focus, 5).map(([index, value]) => pill(lettering(shown.columns, index), value));
    element.replaceChildren(lettering(shown.rows, row, "strong"), quiet("looks at"), ...pills);
  } else if (column >= 0) {
    const pills = strongest(shown, focus, 5).map(([index, value]) => pill(lettering(shown.rows, index), value));
    element.replaceChildren(lettering(shown.columns, column, "strong"), quiet("is looked at by"), ...pills);
  } else {
    const hint = "Point at a word or a cell to see what belongs together, or use the arrow keys.";
    element.replaceChildren(make("span", { class: "hint" }, hint));
  }
}
