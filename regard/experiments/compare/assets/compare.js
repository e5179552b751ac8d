/* The page of a comparison: results, training curves, sentences. */

const section = (title, ...content) => make("section", { class: "part-of-page", "aria-label": title },
  make("h2", {}, title), content);

function highlightKind(chosen) {
  results.highlight(chosen);
  curves.highlight(chosen);
}

const results = makeResults(highlightKind);
const curves = makeCurves(highlightKind);
const sentences = comparison.sentences.length ? makeSentences() : null;

function begin() {
  document.getElementById("page").append(
    makeConclusions(),
    section("Results", results.element),
    section("Training: chrF++ on dev", curves.element),
    ...(sentences ? [section("Sentences on which the kinds differ most", sentences.element)] : []),
    section("This comparison", makeFacts()));
  const render = () => (curves.show(), sentences?.show());
  render();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => ((ramps = null), render()));
  let width = document.body.clientWidth;
  new ResizeObserver(() => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    render();
  }).observe(document.body);
}

begin();
