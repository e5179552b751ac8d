/* The links: both texts, and a curve from each word to those it looks at, thicker where the weight is larger. */

import { clamp, number, range, strongest } from "./data.js";
import { draw, fill, lengths, lettering, make, tint } from "./drawing.js";
import { View } from "./view.js";

const LINKS = 1000; /* curves that are drawn at most; what is pointed at shows its own, however weak */
const NEAR = 40;

export class Links extends View {
  constructor(shown, options) {
    super(shown, options);
    const total = (side, size) => lengths(side.names, size).reduce((sum, length) => sum + length + 28, 0);
    const letters = [24, 22, 20, 18, 17].find((size) =>
      Math.max(total(shown.columns, size), total(shown.rows, size)) <= options.room);
    this.flat = letters !== undefined; /* else one word below the other */
    this.scrolls = false;
    this.keyTokens = this.tokens(shown.columns, "column");
    this.queryTokens = this.tokens(shown.rows, "row");
    this.base = draw("g", { class: "base" });
    this.near = draw("g", { class: "near" });
    const list = (kind, side, all) =>
      make("div", { class: `tokens ${kind}`, dir: this.flat ? side.direction : null }, all);
    this.listen(make("div", {
      class: `links ${this.flat ? "flat" : "tall"}`, dir: shown.columns.direction, tabindex: 0, role: "group",
      "aria-label": options.label, style: { "--letters": `${letters ?? 15}px` },
    },
    draw("svg", { "aria-hidden": "true" }, this.base, this.near),
    list("key-tokens", shown.columns, this.keyTokens), make("div", { class: "middle" }),
    list("query-tokens", shown.rows, this.queryTokens)));
  }

  tokens(side, kind) {
    return range(side.names.length).map((index) => {
      const token = lettering(side, index);
      token.classList.add("token");
      return fill(token, { [`data-${kind}`]: index }, []);
    });
  }

  under(event) {
    const { row, column } = event.target.dataset ?? {};
    if (row === undefined && column === undefined) return null;
    return { row: Number(row ?? -1), column: Number(column ?? -1) };
  }

  first() {
    return { row: 0, column: -1 };
  }

  /** Along a text, or over to the strongest link on the other side. */
  next(key) {
    const { row, column } = this.focus ?? this.first();
    const onRow = row >= 0;
    const index = onRow ? row : column;
    const last = (onRow ? this.revealedRows : this.shown.width) - 1;
    const at = (place) => (onRow ? { row: place, column: -1 } : { row: -1, column: place });
    const right = (onRow ? this.shown.rows : this.shown.columns).direction === "rtl";
    const sideways = right ? ["ArrowLeft", "ArrowRight"] : ["ArrowRight", "ArrowLeft"];
    const [forward, back] = this.flat ? sideways : ["ArrowDown", "ArrowUp"];
    if (key === forward) return at(Math.min(index + 1, last));
    if (key === back) return at(Math.max(index - 1, 0));
    if (key === "Home") return at(0);
    if (key === "End") return at(last);
    if (!key.startsWith("Arrow")) return null;
    const [best] = strongest(this.shown, at(index), 1);
    if (!best) return null;
    return onRow ? { row: -1, column: best[0] } : { row: Math.min(best[0], this.revealedRows - 1), column: -1 };
  }

  follow() {
    const { row, column } = this.focus;
    (row >= 0 ? this.queryTokens[row] : this.keyTokens[column]).scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** Where a curve begins and ends: at the edges of the two words that face each other. */
  ends(row, column) {
    const [one, other] = [this.keyTokens[column], this.queryTokens[row]];
    if (this.flat) {
      const from = [one.offsetLeft + one.offsetWidth / 2, one.offsetTop + one.offsetHeight + 1];
      return [from, [other.offsetLeft + other.offsetWidth / 2, other.offsetTop - 1]];
    }
    const [left, right] = this.shown.columns.direction === "rtl" ? [other, one] : [one, other];
    const from = [left.offsetLeft + left.offsetWidth + 1, left.offsetTop + left.offsetHeight / 2];
    return [from, [right.offsetLeft - 1, right.offsetTop + right.offsetHeight / 2]];
  }

  link(row, column) {
    const [[x, y], [u, v]] = this.ends(row, column);
    const [across, down] = [(x + u) / 2, (y + v) / 2];
    const bend = this.flat ? `${x} ${down} ${u} ${down}` : `${across} ${y} ${across} ${v}`;
    const share = clamp(this.shown.at(row, column) / this.shown.top, 0, 1);
    return draw("path", {
      d: `M${x} ${y}C${bend} ${u} ${v}`, "data-row": row, "data-column": column,
      "stroke-width": (0.6 + 7 * share).toFixed(2), "stroke-opacity": (0.12 + 0.68 * share).toFixed(3),
    });
  }

  /** Draw the curves, now that the words have their places: the strongest, and these on top. */
  settle() {
    const { values, width, top } = this.shown;
    const all = [];
    values.forEach((value, index) => value >= 0.04 * top && all.push([value, index]));
    const drawn = all.sort((one, other) => other[0] - one[0]).slice(0, LINKS).reverse();
    this.base.replaceChildren(...drawn.map(([, index]) => this.link(Math.floor(index / width), index % width)));
  }

  light(focus) {
    this.focus = focus;
    const { row, column } = focus ?? { row: -1, column: -1 };
    const pairs = focus === null ? []
      : row >= 0 && column >= 0 ? [[row, column]]
        : strongest(this.shown, focus, NEAR).map(([index]) => (row >= 0 ? [row, index] : [index, column]));
    this.base.classList.toggle("faint", focus !== null);
    this.near.replaceChildren(...pairs.filter(([one]) => one < this.revealedRows).map((pair) => this.link(...pair)));
    this.mark(this.queryTokens, row, column, (index) => this.shown.at(index, column));
    this.mark(this.keyTokens, column, row, (index) => this.shown.at(row, index));
  }

  /** The word pointed at, and by colour and number those on the other side. */
  mark(all, own, other, value) {
    all.forEach((token, index) => {
      const lit = other >= 0 && (own < 0 || own === index);
      token.classList.toggle("on", index === own);
      tint(token, lit ? value(index) : null, this.shown.top);
      if (lit && value(index) >= 0.005) token.setAttribute("data-weight", number(value(index)));
      else token.removeAttribute("data-weight");
    });
  }

  reveal(rows, columns) {
    this.revealedRows = rows;
    this.queryTokens.forEach((token, index) => token.classList.toggle("unrevealed", index >= rows));
    this.keyTokens.forEach((token, index) => token.classList.toggle("unrevealed", index >= columns));
    for (const path of this.base.children) {
      const there = Number(path.dataset.row) < rows && Number(path.dataset.column) < columns;
      path.setAttribute("visibility", there ? "visible" : "hidden");
    }
  }
}
