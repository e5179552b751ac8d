/* A vector as a strip: one cell for each feature, in the colours of weights, and of their opposite below zero. */

import { clamp, number } from "../look/data.js";
import { make, mixed } from "../look/drawing.js";

/** The largest absolute value of vectors, which has the darkest colour. */
export const topOf = (...vectors) => Math.max(1e-6, ...vectors.flat().map((value) => Math.abs(value ?? 0)));

/** `label` names the vector for screen readers; `point({label, index, value})` for what is pointed at, or null. */
export function makeStrip({ label, values, top, point = null, high = 16 }) {
  const canvas = make("canvas", { width: values.length, height: 1, "aria-hidden": "true" });
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(values.length, 1);
  values.forEach((value, index) => image.data.set([...mixed(value ?? 0, top), 255], 4 * index));
  pen.putImageData(image, 0, 0);
  const mark = make("i", { hidden: true });
  const [low, highest] = [Math.min(...values), Math.max(...values)];
  const element = make("div", {
    class: "strip", tabindex: 0, role: "img", style: { "--strip": `${high}px` },
    "aria-label": `${label}: ${values.length} numbers from ${number(low)} to ${number(highest)}`,
  }, canvas, mark);
  let at = -1;

  function show(index) {
    at = index;
    mark.hidden = index < 0;
    if (index >= 0) mark.style.setProperty("inset-inline-start", `${(100 * (index + 0.5)) / values.length}%`);
    point?.(index < 0 ? null : { label, index, value: values[index] });
  }

  const under = (event) => {
    const box = canvas.getBoundingClientRect();
    return clamp(Math.floor(((event.clientX - box.left) / box.width) * values.length), 0, values.length - 1);
  };
  element.addEventListener("pointermove", (event) => show(under(event)));
  element.addEventListener("pointerdown", (event) => show(under(event)));
  element.addEventListener("pointerleave", () => show(-1));
  element.addEventListener("blur", () => show(-1));
  element.addEventListener("keydown", (event) => {
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: values.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    show(clamp(next, 0, values.length - 1));
  });
  return element;
}
