/* Elements and colours. Text from the data only ever becomes text nodes and attributes that cannot run. */

import { clamp, digits, number } from "./data.js";

export function make(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function draw(tag, properties = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

export function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A word or piece, in its own direction and language. */
export function lettering(named, index, tag = "span") {
  const kind = index === named.end ? "end" : null;
  const manner = kind ? { dir: "ltr", title: "end" } : { dir: named.direction, lang: named.language };
  return make(tag, { class: kind, ...manner }, named.names[index]);
}

const ruler = document.createElement("canvas").getContext("2d");

export function lengths(names, size, weight = 400) {
  ruler.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return names.map((name) => ruler.measureText(name).width);
}

/** How high a picture may be before it scrolls. */
export const tallest = () => (window.parent !== window ? 640 : Math.max(420, 0.82 * window.innerHeight));

/** The shades that a CSS variable lists, from nothing to the top. */
export const listed = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim().split(/\s+/);

let ramps = null; /* the shades of the current colour scheme, read once */
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (ramps = null));

/** [red, green, blue] of a value on a scale from −top over 0 to top. */
export function mixed(value, top) {
  const parts = (shade) => [1, 3, 5].map((place) => parseInt(shade.slice(place, place + 2), 16));
  ramps ??= { for: listed("--weights").map(parts), against: listed("--against").map(parts) };
  const shades = value < 0 ? ramps.against : ramps.for;
  return shades[Math.round(clamp(Math.abs(value) / top, 0, 1) * (shades.length - 1))];
}

export function colour(value, top) {
  const parts = mixed(value, top);
  const [red, green, blue] = parts.map((part) => (part / 255) ** 2.2);
  const light = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return { fill: `rgb(${parts.join(" ")})`, ink: light > 0.18 ? "#000000" : "#ffffff" };
}

/** Colour an element by a value. Next to nothing takes the colour away. */
export function tint(element, value, top) {
  const lit = value !== null && Math.abs(value) >= 0.04 * top;
  element.classList.toggle("lit", lit);
  if (!lit) return;
  const { fill: ground, ink } = colour(value, top);
  element.style.setProperty("--tint", ground);
  element.style.setProperty("--tint-ink", ink);
}

export function legend(shown) {
  const stops = shown.low < 0 ? [listed("--against").reverse(), listed("--weights")] : [listed("--weights")];
  return make("div", { class: "legend", "aria-hidden": "true" },
    make("span", { class: "number" }, number(shown.low, shown.low ? 2 : 0)),
    make("i", { style: { "--stops": stops.flat().join(", ") } }),
    make("span", { class: "number" }, number(shown.top, shown.top === 1 ? 0 : digits(shown))));
}
