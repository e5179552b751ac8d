/* The grid: a row for each word that looks, a column for each that is looked at, darker where the weight is larger. */

import { clamp, number, range } from "./data.js";
import { colour, lengths, lettering, make, mixed, tallest, tint } from "./drawing.js";
import { View } from "./view.js";

const BUILT = 5000; /* cells that are elements; more are pixels of a canvas, which the browser enlarges */

const TILT = (50 * Math.PI) / 180;

function gridSizes(shown, room, whole) {
  if (whole) {
    const side = Math.max(Math.min(room / shown.width, (tallest() - 8) / shown.height), 0.5);
    return { wide: side, high: side, left: 0, top: 0, tail: 0, bare: true };
  }
  const most = Math.min(180, room * 0.34); /* of a name */
  const left = Math.min(Math.max(...lengths(shown.rows.names, 16, 600)) + 10, most) + 12;
  const long = lengths(shown.columns.names, 16, 600);
  const upright = Math.max(Math.max(...long) + 16, 48);
  if (upright < 136 && left + shown.width * upright <= room) {
    const wide = clamp((room - left) / shown.width, upright, Math.max(upright, 84));
    return { wide, high: 42, left, top: 38, tail: 0, letters: 16, headLetters: 16, most };
  }
  return { ...tilted(shown, room - left, long), left, most };
}

/** Names at an angle above narrow columns; the last ones reach out sideways. */
function tilted(shown, room, long) {
  const head = Math.min(Math.max(...long) + 12, 160);
  const reach = (wide) => Math.max(...long.map((each, column) =>
    (Math.min(each + 12, head)) * Math.cos(TILT) - (shown.width - column - 0.5) * wide), 0);
  const tail = reach(0.85 * room / shown.width);
  const wide = clamp((room - tail) / shown.width, 16, 62);
  const high = clamp(wide, 20, 42);
  const letters = high < 24 ? 13 : high < 36 ? 15 : 16;
  const headLetters = clamp(wide * Math.sin(TILT) * 0.96, 11.5, letters);
  return { wide, high, top: head * Math.sin(TILT) + 18, tail: reach(wide), letters, headLetters, head, tilted: true };
}

export class Grid extends View {
  constructor(shown, options) {
    super(shown, options);
    const { room, whole, label } = options;
    this.sizes = gridSizes(shown, room, whole);
    this.right = shown.columns.direction === "rtl";
    this.scrolls = overflows(shown, this.sizes, room);
    this.names = range(this.sizes.bare ? 0 : shown.height).map((row) =>
      make("div", { class: "name", "data-row": row }, lettering(shown.rows, row)));
    this.heads = range(this.sizes.bare ? 0 : shown.width).map((column) =>
      make("div", { class: "head", "data-column": column }, lettering(shown.columns, column)));
    const over = (kind) => make("div", { class: kind, hidden: true });
    this.across = over("band across");
    this.down = over("band down");
    this.mark = over("mark");
    this.veil = over("veil");
    this.listen(this.table(label));
  }

  table(label) {
    const { wide, high, top, left, tail, tilted: leaning, ...sizes } = this.sizes;
    const style = {
      "--wide": `${wide}px`, "--high": `${high}px`, "--letters": `${sizes.letters}px`,
      "--head-letters": `${sizes.headLetters}px`, "--longest": `${sizes.head}px`, "--longest-name": `${sizes.most}px`,
    };
    const around = sizes.bare ? [] : [
      make("div", { class: "corner" }),
      make("div", { class: "heads", style: { height: `${top}px`, "padding-inline-end": `${tail}px` } }, this.heads),
      make("div", { class: "names", style: { width: `${left}px` } }, this.names),
    ];
    const kinds = ["grid", leaning && "tilted", high < 26 && "fine"].filter(Boolean).join(" ");
    this.cells = this.inner();
    return make("div", {
      class: kinds, dir: this.shown.columns.direction, tabindex: 0, role: "group", "aria-label": label, style,
    }, around, this.cells);
  }

  inner() {
    const { shown, sizes: { wide, high } } = this;
    const style = {
      width: `${shown.width * wide}px`, height: `${shown.height * high}px`,
      "grid-template-columns": `repeat(${shown.width}, ${wide}px)`,
    };
    const many = shown.width * shown.height > BUILT;
    const content = many ? painted(shown, this.sizes) : built(shown, this.sizes);
    return make("div", { class: "cells", style }, content,
      this.across, this.down, this.veil, this.mark);
  }

  under(event) {
    const name = event.target.closest?.("[data-row], [data-column]");
    if (name) return { row: Number(name.dataset.row ?? -1), column: Number(name.dataset.column ?? -1) };
    const box = this.cells.getBoundingClientRect();
    const place = Math.floor((event.clientX - box.left) / this.sizes.wide);
    const column = this.right ? this.shown.width - 1 - place : place;
    const row = Math.floor((event.clientY - box.top) / this.sizes.high);
    const inside = row >= 0 && row < this.revealedRows && column >= 0 && column < this.shown.width;
    return inside ? { row, column } : null;
  }

  first() {
    return { row: 0, column: 0 };
  }

  /** Left of the first column is the row as a whole, above the first row the column. */
  next(key) {
    const { row, column } = this.focus ?? this.first();
    const [last, lowest] = [this.shown.width - 1, this.revealedRows - 1];
    const [forward, back] = this.right ? ["ArrowLeft", "ArrowRight"] : ["ArrowRight", "ArrowLeft"];
    if (key === forward) return { row, column: Math.min(column + 1, last) };
    if (key === back) return { row, column: Math.max(column - 1, row < 0 ? 0 : -1) };
    if (key === "ArrowDown") return { row: Math.min(row + 1, lowest), column };
    if (key === "ArrowUp") return { row: Math.max(row - 1, column < 0 ? 0 : -1), column };
    if (key === "Home") return { row, column: 0 };
    if (key === "End") return { row, column: last };
    return null;
  }

  follow() {
    this.mark.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** The row, the column, and by colour the names they meet. */
  light(focus) {
    this.focus = focus;
    const { row, column } = focus ?? { row: -1, column: -1 };
    const { wide, high } = this.sizes;
    place(this.across, row >= 0, { top: row * high, height: high });
    place(this.down, column >= 0, { "inset-inline-start": column * wide, width: wide });
    const start = { top: Math.max(row, 0) * high, "inset-inline-start": Math.max(column, 0) * wide };
    place(this.mark, focus !== null, { ...start, height: high, width: wide });
    this.mark.style.setProperty("visibility", row >= 0 && column >= 0 ? "visible" : "hidden");
    this.names.forEach((name, index) => {
      name.classList.toggle("on", index === row);
      tint(name, column >= 0 && index !== row ? this.shown.at(index, column) : null, this.shown.top);
    });
    this.heads.forEach((head, index) => {
      head.classList.toggle("on", index === column);
      tint(head, row >= 0 && index !== column ? this.shown.at(row, index) : null, this.shown.top);
    });
  }

  /** Show only the first rows and columns. */
  reveal(rows, columns) {
    this.revealedRows = rows;
    place(this.veil, rows < this.shown.height, { top: rows * this.sizes.high });
    this.names.forEach((name, index) => name.classList.toggle("unrevealed", index >= rows));
    this.heads.forEach((head, index) => head.classList.toggle("unrevealed", index >= columns));
  }
}

function overflows(shown, sizes, room) {
  const [wide, high] = [sizes.left + shown.width * sizes.wide + sizes.tail, sizes.top + shown.height * sizes.high];
  return wide > room + 1 || high > tallest();
}

function place(element, there, sizes) {
  element.hidden = !there;
  if (there) for (const [name, size] of Object.entries(sizes)) element.style.setProperty(name, `${size}px`);
}

function built(shown, sizes) {
  const written = sizes.wide >= 34 && sizes.high >= 26;
  return range(shown.height * shown.width).map((index) => {
    const value = shown.values[index];
    const { fill: ground, ink } = colour(value, shown.top);
    const text = written && Math.abs(value) >= shown.top * 0.08 ? number(value).replace(/^(−?)0\./, "$1.") : "";
    const style = { "background-color": ground, color: ink };
    return make("div", { class: "cell", "aria-hidden": "true", dir: "ltr", style }, text);
  });
}

function painted(shown, sizes) {
  const canvas = pixels(shown);
  canvas.style.setProperty("width", `${shown.width * sizes.wide}px`);
  canvas.style.setProperty("height", `${shown.height * sizes.high}px`);
  return canvas;
}

/** A picture as one pixel for each value, which the browser enlarges. */
export function pixels(shown) {
  const canvas = make("canvas", { width: shown.width, height: shown.height, "aria-hidden": "true" });
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(shown.width, shown.height);
  const right = shown.columns.direction === "rtl";
  for (let row = 0; row < shown.height; row += 1) {
    for (let column = 0; column < shown.width; column += 1) {
      const across = right ? shown.width - 1 - column : column;
      image.data.set([...mixed(shown.at(row, column), shown.top), 255], 4 * (row * shown.width + across));
    }
  }
  pen.putImageData(image, 0, 0);
  return canvas;
}
