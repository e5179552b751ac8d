/* The content of a page (regard/look/page_data.py) as pictures: names of rows and columns, and a number for each pair. */

export const END = "⏹"; /* of an end token; as in regard/look/table.py */
export const BLANK = "␣"; /* of a piece without visible text */

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
export const range = (count) => Array.from({ length: count }, (_, index) => index);
export const number = (value, digits = 2) => (Number.isFinite(value) ? value.toFixed(digits).replace("-", "−") : "–");
/** Digits for weights of a picture: where all of them are small, two would tell nothing. */
export const digits = ({ top }) => (top < 0.05 ? 4 : 2);
export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** A side by its words or its units (pieces, but no cut within a character): its names label rows or columns. */
export function named(side, level) {
  const texts = level === "words" ? side.words : side.units.map(([, text]) => text);
  const end = side.ended ? texts.length - 1 : -1;
  const names = texts.map((text, index) => text.trim() || (index === end ? END : BLANK));
  return { side, names, end, direction: side.direction, language: side.language };
}

export function picture(rows, columns, values, more) {
  const across = columns.names.length;
  const at = (row, column) => values[row * across + column];
  return { rows, columns, values, height: rows.names.length, width: across, at, ...more };
}

/** The weights of one attention; a layer or head of −1 is the mean over all. `fixed`: the darkest colour means 1. */
export function attentionPicture(trace, { attention, layer, head, level, fixed = false }) {
  const given = trace.attentions[attention];
  const rows = named(trace[given.rows], level);
  const columns = named(trace[given.columns], level);
  const values = new Float32Array(rows.names.length * columns.names.length);
  const all = bytes((level === "words" && given.words) || given.units);
  const layers = layer < 0 ? range(given.layers) : [layer];
  const heads = head < 0 ? range(given.heads) : [head];
  for (const i of layers) {
    for (const j of heads) {
      const first = (i * given.heads + j) * values.length;
      for (let place = 0; place < values.length; place += 1) values[place] += all[first + place];
    }
  }
  let most = 0;
  for (let place = 0; place < values.length; place += 1) {
    values[place] *= given.top / (255 * layers.length * heads.length);
    most = Math.max(most, values[place]);
  }
  /* Long sentences spread their weights thin: the darkest colour is then less than 1, and the legend says so. In a
     history it must mean the same at all times. */
  const alone = rows.names.length === 1; /* one answer about a whole text: each word has little */
  const top = fixed ? 1 : alone ? most || 1 : Math.max(0.05, Math.ceil(most * 10 - 0.001) / 10);
  return picture(rows, columns, values, { low: 0, top, level });
}

/** The values of one kind of evidence about the weights; always by words. */
export function evidencePicture(trace, evidence) {
  const { low, high, values } = trace.evidence[evidence];
  const top = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const numbers = Float32Array.from(bytes(values), (byte) => low + (byte / 255) * (high - low));
  const more = { low: low < 0 ? -top : 0, top, level: "words" };
  return picture(named(trace.target, "words"), named(trace.source, "words"), numbers, more);
}

/** The strongest of what a row looks at, or of what looks at a column: [index, value], the strongest first. */
export function strongest(shown, { row, column }, count) {
  const values = column < 0
    ? range(shown.width).map((index) => [index, shown.at(row, index)])
    : range(shown.height).map((index) => [index, shown.at(index, column)]);
  return values.sort((one, other) => other[1] - one[1]).slice(0, count).filter(([, value]) => value >= 0.005 * shown.top);
}
