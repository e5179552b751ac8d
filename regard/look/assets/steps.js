/* Stepping: a slider that plays, and for each step the alternatives. */

import { END, clamp, number } from "./data.js";
import { lettering, make } from "./drawing.js";

/** From 1 to `count`; `change(value)` when it moves. */
export function makePlayer({ label, count, value, pace, change, caption }) {
  let timer = null;
  const slider = make("input", {
    type: "range", min: 1, max: count, value, "aria-label": label, input: () => (stop(), go(Number(slider.value))),
  });
  const button = make("button", { type: "button", class: "button", click: () => (timer ? stop() : play()) });
  const output = make("output", { class: "number" });
  const element = make("div", { class: "player" }, button, slider, output);

  function show(text, name) {
    button.replaceChildren(text);
    button.setAttribute("aria-label", name);
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    show("▶\uFE0E", "Play");
  }

  function play() {
    go(Number(slider.value) >= count ? 1 : Number(slider.value) + 1);
    show("❚❚", "Pause");
    timer = setInterval(() => {
      if (Number(slider.value) >= count) stop();
      else go(Number(slider.value) + 1);
    }, pace);
  }

  function go(next) {
    set(clamp(next, 1, count));
    change(Number(slider.value));
  }

  function set(next) {
    slider.value = next;
    output.replaceChildren(caption(Number(slider.value)));
    slider.setAttribute("aria-valuetext", output.textContent);
  }

  stop();
  set(value);
  return { element, stop, set, go, by: (distance) => (stop(), go(Number(slider.value) + distance)) };
}

/** `change(step)` is called with the number of units to show. */
export function makeSteps(trace, change) {
  const count = trace.target.units.length;
  const list = make("ol", { class: "bars" });
  const caption = (step) => `step ${step} of ${count}`;
  const player = makePlayer({ label: "Step of decoding", count, value: count, pace: 750, change, caption });
  const element = make("section", { class: "steps", "aria-label": "Decoding" },
    make("h2", {}, "Step by step"), player.element,
    trace.steps.length ? list : null);
  if (trace.steps.length) show(null);

  /** How sure the model was of a unit, and of what else. */
  function show(unit) {
    if (!trace.steps.length) return;
    if (unit === null) {
      const hint = "Move the slider to watch the answer come about: how sure the model was, and what else it considered.";
      list.replaceChildren(make("li", { class: "hint" }, hint));
      return;
    }
    const steps = trace.steps[unit];
    list.replaceChildren(...steps.flatMap(([text, probability, others]) => [
      bar(text, probability, true),
      ...others.slice(0, steps.length > 1 ? 2 : 5).map(([other, its]) => bar(other, its, false)),
    ]));
  }

  function bar(text, probability, chosen) {
    const { direction, language } = trace.target;
    const side = { names: [text || END], end: text ? -1 : 0, direction, language };
    return make("li", { class: chosen ? "chosen" : null },
      make("span", {}, lettering(side, 0)), make("i", { style: { "--probability": probability ?? 0 } }),
      make("span", { class: "number" }, probability === null ? "–" : `${number(100 * probability, 1)} %`));
  }

  return { element, player, show };
}
