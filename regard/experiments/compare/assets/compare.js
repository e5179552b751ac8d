/* The page of a comparison: results, training curves, sentences. */

import { make } from "../look/drawing.js";
import { makeCurves } from "./curves.js";
import { makeConclusions, makeFacts, makeResults } from "./results.js";
import { makeSentences } from "./sentences.js";

const section = (title, ...content) => make("section", { class: "part-of-page", "aria-label": title },
  make("h2", {}, title), content);

/** Put the parts of a comparison into `element`, which has its place on the page; return what draws them again. */
export function showComparison(element, content) {
  const { comparison } = content;
  const highlight = (chosen) => (results.highlight(chosen), curves.highlight(chosen));
  const results = makeResults(comparison, highlight);
  const curves = makeCurves(comparison, highlight);
  const sentences = comparison.sentences.length ? makeSentences(content) : null;
  element.append(
    makeConclusions(comparison),
    section("Results", results.element),
    section("Training: chrF++ on dev", curves.element),
    ...(sentences ? [section("Sentences on which the kinds differ most", sentences.element)] : []),
    section("This comparison", makeFacts(comparison)));
  const render = () => (curves.show(), sentences?.show());
  render();
  return render;
}
