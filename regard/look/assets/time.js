/* How it came about: the loss and the score over training, and a slider from validation to validation. */

import { number } from "./data.js";
import { draw, make } from "./drawing.js";
import { makePlayer } from "./steps.js";

export function makeTime(moments, change) {
  const curves = [makeCurve("Loss", "loss", 3, pick), makeCurve("Score", "score", 1, pick)];
  const caption = (value) => {
    const { update, epoch } = moments[value - 1];
    return `update ${update.toLocaleString("en")} · epoch ${number(epoch, 1)}`;
  };
  const player = makePlayer({
    label: "Validation", count: moments.length, value: moments.length, pace: 650, caption,
    change: (value) => (show(), change(value - 1)),
  });
  const element = make("section", { class: "time", "aria-label": "Training" },
    make("div", { class: "curves" }, curves.map((curve) => curve.element)), player.element);

  function pick(index) {
    player.stop();
    player.go(index + 1);
  }

  function show() {
    const now = Number(player.element.querySelector("input").value) - 1;
    curves.forEach((curve) => curve.show(moments, now));
  }

  return { element, player, show };
}

export function makeCurve(title, key, digits, pick) {
  const value = make("span", { class: "number" });
  const svg = draw("svg", { role: "img", "aria-label": `${title} over training` });
  const element = make("div", { class: "curve" }, make("h2", {}, title, value), svg);
  let places = [];
  const choose = (event) => {
    const at = event.clientX - svg.getBoundingClientRect().left;
    const distances = places.map((place) => Math.abs(place - at));
    pick(distances.indexOf(Math.min(...distances)));
  };
  svg.addEventListener("pointerdown", choose);
  svg.addEventListener("pointermove", (event) => event.buttons & 1 && choose(event));

  function show(moments, now) {
    const [width, height, left, foot] = [svg.clientWidth || 300, 130, 42, 20];
    const known = moments.map((moment) => moment[key]).filter((each) => each !== null);
    const [low, high] = known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
    const [first, last] = [moments[0].update, moments[moments.length - 1].update];
    const across = (moment) => left + 6 + ((moment.update - first) / (last - first || 1)) * (width - left - 14);
    const up = (each) => height - foot - 6 - ((each - low) / (high - low || 1)) * (height - foot - 14);
    const line = (some) => {
      const points = some.filter((moment) => moment[key] !== null)
        .map((moment) => `${across(moment).toFixed(1)} ${up(moment[key]).toFixed(1)}`);
      return points.length ? `M${points.join("L")}` : "";
    };
    const here = moments[now];
    places = moments.map(across);
    value.replaceChildren(here[key] === null ? "–" : number(here[key], digits));
    const text = (x, y, anchor, words) => draw("text", { x, y, "text-anchor": anchor }, words);
    svg.replaceChildren(
      draw("line", { x1: left, y1: height - foot, x2: width, y2: height - foot }),
      text(left - 6, up(high) + 4, "end", number(high, digits - 1)),
      text(left - 6, up(low) + 4, "end", number(low, digits - 1)),
      text(left, height - 5, "start", first.toLocaleString("en")),
      text(width, height - 5, "end", last.toLocaleString("en")),
      draw("path", { class: "rest", d: line(moments) }), draw("path", { d: line(moments.slice(0, now + 1)) }),
      draw("line", { class: "now", x1: across(here), y1: 4, x2: across(here), y2: height - foot }),
      ...(here[key] === null ? [] : [draw("circle", { cx: across(here), cy: up(here[key]), r: 4.5 })]));
  }

  return { element, show };
}
