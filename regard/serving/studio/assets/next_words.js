/* The words that could stand in place of one: a small window beside it. */

import { END, number } from "../look/data.js";
import { make } from "../look/drawing.js";

function percent(probability) {
  if (probability < 0.0001) return "< 0.01 %";
  return `${number(100 * probability, probability < 0.01 ? 2 : 1)} %`;
}

/** Open the window in `parent`, below `word`. `entries`: {word, probability, text}; `choose(entry)`; `close()` at the
    end. Returns a function that closes it. */
export function showNextWords({ parent, word, entries, language, direction, choose, close }) {
  const current = word.textContent;
  const buttons = entries.map((entry) => make("button", {
    type: "button", "aria-current": entry.word === current ? "true" : null, click: () => (end(), choose(entry)),
  },
  entry.word ? make("span", { lang: language, dir: direction }, entry.word) : make("span", {}, END, " ends here"),
  make("i", { "aria-hidden": "true", style: { "--probability": entry.probability } }),
  make("span", { class: "number" }, percent(entry.probability))));
  const element = make("div", { class: "choices-of-word", role: "dialog", "aria-label": `Other words for ${current}` },
    make("h2", {}, "What else it considered"), make("ul", {}, buttons.map((button) => make("li", {}, button))));
  parent.append(element);
  place(element, parent, word);
  const ending = new AbortController();
  const { signal } = ending;
  document.addEventListener("pointerdown", (event) => element.contains(event.target) || end(), { signal });
  element.addEventListener("keydown", (event) => {
    const index = buttons.indexOf(document.activeElement);
    const next = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (event.key === "Escape") {
      end();
      word.focus();
    } else if (next !== undefined) buttons[Math.min(Math.max(next, 0), buttons.length - 1)].focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }, { signal });
  (buttons.find((button) => button.hasAttribute("aria-current")) ?? buttons[0])?.focus({ preventScroll: true });
  element.scrollIntoView({ block: "nearest" });

  function end() {
    if (signal.aborted) return;
    ending.abort();
    element.remove();
    close?.();
  }

  return end;
}

function place(element, parent, word) {
  const [box, outer] = [word.getBoundingClientRect(), parent.getBoundingClientRect()];
  const left = Math.min(Math.max(box.left - outer.left - 8, 8), Math.max(outer.width - element.offsetWidth - 8, 8));
  element.style.setProperty("left", `${left}px`);
  element.style.setProperty("top", `${box.bottom - outer.top + 6}px`);
}
