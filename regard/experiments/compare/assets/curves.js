/* Training curves: the chrF++ of every validation, a line for each run in the colour of its kind. */

import { range } from "../look/data.js";
import { draw, make } from "../look/drawing.js";
import { makeChoice } from "../look/panels.js";
import { kindClass, kindName, kindStyle, trainedKinds } from "./results.js";

export function makeCurves(comparison, highlight) {
  const svg = draw("svg", { role: "img", "aria-label": "chrF++ on dev over training" });
  const state = { axis: 1, chosen: null };
  const keys = comparison.kinds.map((kind, index) => kind.shown === null ? null : make("li", {}, make("button", {
    type: "button", pointerenter: () => highlight(index), pointerleave: () => highlight(null),
    focus: () => highlight(index), blur: () => highlight(null),
  }, kindName(comparison, index))));
  const axis = makeChoice("over", "axis", [[1, "Minutes"], [0, "Updates"]], state.axis, (value) => {
    state.axis = value;
    show();
  });
  const element = make("div", { class: "chart" },
    make("div", { class: "choices" }, axis), svg, make("ul", { class: "keys-of-kinds" }, keys));

  function show() {
    const [width, height, left, foot] = [svg.clientWidth || 600, svg.clientHeight || 320, 34, 24];
    const points = trainedKinds(comparison).flatMap((kind) => kind.curves.flatMap((curve) => curve.points));
    const last = Math.max(...points.map((point) => point[state.axis]), 1e-9);
    const top = Math.max(...points.map((point) => point[2]), 1);
    const step = niceStep(top / 5);
    const high = Math.ceil(top / step) * step;
    const across = (value) => left + 8 + (value / last) * (width - left - 18);
    const up = (value) => height - foot - (value / high) * (height - foot - 12);
    const text = (x, y, anchor, words) => draw("text", { x, y, "text-anchor": anchor }, words);
    const lines = range(Math.round(high / step) + 1).flatMap((index) => {
      const y = up(index * step);
      return [draw("line", { x1: left, y1: y, x2: width, y2: y }), text(left - 8, y + 4, "end", String(index * step))];
    });
    const unit = state.axis ? "min" : "updates";
    const ticks = tickValues(last).map((value) => {
      const x = across(value);
      const anchor = value === 0 ? "start" : x > width - 60 ? "end" : "middle";
      return text(Math.min(x, width), height - 5, anchor, value ? `${value.toLocaleString("en")} ${unit}` : "0");
    });
    svg.replaceChildren(...lines, ...ticks, ...comparison.kinds.flatMap((kind, index) => curves(kind, index, across, up)));
    dim();
  }

  function curves(kind, index, across, up) {
    return kind.curves.map(({ points }) => {
      const places = points.map((point) => [across(point[state.axis]).toFixed(1), up(point[2]).toFixed(1)]);
      const [x, y] = places[places.length - 1] ?? [];
      return draw("g", { "data-kind": index, style: kindStyle(index) },
        draw("path", { class: kindClass(index, null) || null, d: places.length ? `M${places.map((each) => each.join(" ")).join("L")}` : "" }),
        places.length ? draw("circle", { cx: x, cy: y, r: 3.5 }) : null);
    });
  }

  function dim() {
    svg.querySelectorAll("[data-kind]").forEach((group) =>
      group.classList.toggle("dim", state.chosen !== null && Number(group.dataset.kind) !== state.chosen));
    keys.forEach((key, index) => key?.firstChild.classList.toggle("on", index === state.chosen));
  }

  return {
    element, show,
    highlight: (chosen) => {
      state.chosen = chosen !== null && comparison.kinds[chosen].shown !== null ? chosen : null;
      dim();
    },
  };
}

/** 1, 2 or 5 times a power of ten, at least as large as asked for. */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least);
}

function tickValues(last) {
  const step = niceStep(last / 6);
  return range(Math.floor(last / step) + 1).map((index) => Number((index * step).toPrecision(6)));
}
