/* The glossary: pairs of terms that translations must use. The browser stores them, for each pair of languages. */

import { make } from "../look/drawing.js";

const KEY = "regard-glossary:";

/** `change()` whenever the terms are others. The terms without empty ones: `terms()`. */
export function makeGlossary({ languages, change }) {
  const key = KEY + (languages ?? []).join("-");
  const list = make("ul", { class: "terms" });
  const title = make("summary");
  const add = make("button", { type: "button", class: "button", click: () => addTerm("", "").focus() }, "Add a term");
  const hint = "A term on the left is always translated as the one on the right. "
    + "Several forms: हा | ही. The word itself: =";
  const element = make("details", { class: "panel glossary" },
    title, make("p", { class: "message" }, hint), list, add);
  let before = "";

  function terms() {
    const rows = [...list.children].map((row) => [...row.querySelectorAll("input")].map((input) => input.value.trim()));
    return rows.filter(([source, target]) => source && target);
  }

  function addTerm(source, target) {
    const field = (value, name, language) => make("input", {
      type: "text", value, "aria-label": name, placeholder: name, lang: language, dir: "auto", maxlength: 500,
      input: changed,
    });
    const first = field(source, "Source term", languages?.[0]);
    const remove = make("button", {
      type: "button", class: "button plain", "aria-label": "Remove the term",
      click: () => (row.remove(), changed(), add.focus()),
    }, "✕");
    const second = field(target, "Target term", languages?.[1]);
    const row = make("li", {}, first, make("span", { "aria-hidden": "true" }, "→"), second, remove);
    list.append(row);
    return first;
  }

  function changed() {
    const now = JSON.stringify(terms());
    title.replaceChildren(terms().length ? `Glossary · ${terms().length}` : "Glossary");
    if (now === before) return;
    before = now;
    store(key, now);
    change();
  }

  for (const [source, target] of stored(key)) addTerm(source, target);
  before = JSON.stringify(terms());
  title.replaceChildren(terms().length ? `Glossary · ${terms().length}` : "Glossary");
  return { element, terms };
}

function stored(key) {
  try {
    const found = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(found) ? found.filter((each) => Array.isArray(each) && each.length === 2) : [];
  } catch {
    return []; /* the browser keeps nothing, or something else */
  }
}

function store(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    /* the browser keeps nothing: the terms last as long as the page */
  }
}
