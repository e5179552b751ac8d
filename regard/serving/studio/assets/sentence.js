/* One sentence of a test set: its attention, and its translation to correct and save as a pair for `regard tune`. */

import { number } from "../look/data.js";
import { make } from "../look/drawing.js";
import { makeExplorer } from "../look/explorer.js";
import { percent } from "./parts.js";

const pairs = new Map(); /* source → its corrected translation; as long as the page is open */
const oneLine = (text) => text.replace(/\s+/g, " ").trim();

export function makeSentence({ api, download, problem, close, move }) {
  let explorer = null;
  let shown = null;
  const button = (text, click, more = {}) => make("button", { type: "button", class: "button", click, ...more }, text);
  const heading = make("h2", { tabindex: -1 });
  const texts = make("dl", { class: "pair" });
  const edit = make("textarea", { rows: 2, "aria-label": "Corrected translation" });
  const saved = make("p", { class: "hint", role: "status" });
  const file = button("Download pairs.tsv", () => save(), { hidden: true });
  const picture = make("div", {});
  const element = make("div", { class: "sentence" },
    make("div", { class: "choices" }, button("← All sentences", close), button("Previous", () => move(-1)),
      button("Next", () => move(1))),
    heading,
    make("div", { class: "two" }, make("div", { class: "panel" }, texts),
      make("div", { class: "panel correct" }, make("h2", {}, "A better translation?"), edit,
        make("div", { class: "choices" }, button("Save as a pair", () => keep()), file), saved)),
    picture);

  async function show(job, row, model) {
    shown = { row, model };
    heading.textContent = `Sentence ${row.number + 1} of ${job.total}`;
    const to = model.languages?.[1] ?? null;
    const facts = [["chrF++", number(row.score, 1)], ["Confidence of the sentence", percent(row.confidence)],
      ["Entropy", row.entropy === null ? "–" : `${number(row.entropy)} bits a word`],
      ["Perhaps left out", row.missed.join(", ") || "–"], ["Perhaps repeated", row.repeated.join(", ") || "–"]];
    texts.replaceChildren(
      ...row.references.flatMap((text) =>
        [make("dt", {}, "Reference"), make("dd", { dir: "auto", lang: to }, text || "(nothing)")]),
      ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", { class: "fact" }, value)]));
    edit.value = pairs.get(row.source) ?? row.translation;
    edit.dir = "auto";
    if (to) edit.lang = to;
    edit.rows = Math.max(2, Math.ceil(edit.value.length / 80));
    report("");
    picture.classList.add("waiting");
    heading.focus();
    try {
      const { content } = await api.get(`/api/studio/corpus/${job.id}/rows/${row.number}`, { key: "row" });
      if (shown.row !== row) return;
      showPicture(content);
      problem.show(null);
    } catch (error) {
      problem.show(error);
    }
  }

  function showPicture(content) {
    picture.classList.remove("waiting");
    if (content && explorer) {
      explorer.show(content);
      return;
    }
    explorer?.destroy();
    explorer = null;
    if (!content) return picture.replaceChildren(make("p", { class: "hint" }, "There is nothing to look at."));
    explorer = makeExplorer(content, { without: ["keys"] });
    picture.replaceChildren(explorer.element);
    return explorer.render();
  }

  async function keep() {
    const target = oneLine(edit.value);
    if (!target) return report("A pair needs a translation.");
    pairs.set(shown.row.source, target);
    return report((await suggest(shown, target)) ? "Saved, and added to the server's file of suggestions." : "Saved.");
  }

  /** Add a pair to the file of `regard studio --suggestions FILE.tsv`, if there is one. */
  async function suggest({ row, model }, target) {
    if (!model.languages) return false;
    const [source, code] = model.languages;
    try {
      const { suggestions } = await api.get("/frontend/settings");
      if (suggestions) await api.post("/suggest", { q: row.source, s: target, source, target: code });
      return suggestions;
    } catch (error) {
      problem.show(error);
      return false;
    }
  }

  function report(words) {
    const count = `${pairs.size} pair${pairs.size === 1 ? "" : "s"} saved for regard tune`;
    const note = pairs.size ? `${count}; download them before you close the page.` : "";
    saved.textContent = [words, note].filter(Boolean).join(" ");
    file.hidden = !pairs.size;
  }

  function save() {
    const lines = [...pairs].map(([source, target]) => `${oneLine(source)}\t${target}\n`);
    download("pairs.tsv", new Blob(lines, { type: "text/tab-separated-values" }));
  }

  return { element, show, destroy: () => explorer?.destroy() };
}
