/* The page: what is chosen, and everything drawn from it. */

const state = {
  moment: data.traces.length - 1, sentence: 0, view: "grid", level: "words",
  attention: 0, layer: -1, head: -1, evidence: -1, whole: false, step: null, pointed: null,
};
const NAMES = { cross: "Cross", encoder: "Encoder", decoder: "Decoder", pool: "Pool" };
const current = () => data.traces[state.moment][state.sentence];
const attended = () => current().attentions[state.attention];
const pieced = data.traces.flat().some((trace) => trace.source.units.length !== trace.source.words.length
  || trace.target.units.length !== trace.target.words.length);

const main = make("main", {});
const slots = {
  pair: make("div"), choices: make("div", { class: "choices" }), stage: make("div", { class: "stage" }),
  steps: make("div"), below: make("div"),
};
const work = make("div", { class: "work" }, slots.stage, slots.steps);
const summary = make("p", { class: "summary", "aria-live": "polite" });
let pair = null;
let steps = null;
let views = []; /* the picture, and that of the evidence it is compared with */

/** A word of a side as it stands in a picture by `level`, and back. */
const toWord = (side, level, index) => (index < 0 || level === "words" ? index : side.groups[index]);
const fromWord = (side, level, index) => (index < 0 || level === "words" ? index : side.groups.indexOf(index));

function point(focus) {
  const same = JSON.stringify(focus) === JSON.stringify(state.pointed);
  state.pointed = focus;
  if (!same) light();
}

/** What is pointed at; else the row of the step, or the only one there is. */
function focused() {
  const alone = attended()?.rows === "target" && current().target.units.length === 1;
  if (!state.pointed && alone) return { row: 0, column: -1 };
  if (state.pointed || state.step === null || attended()?.rows !== "target") return state.pointed;
  return { row: state.level === "words" ? current().target.groups[state.step - 1] : state.step - 1, column: -1 };
}

function light() {
  if (!views.length) return;
  const trace = current();
  const { rows, columns } = attended();
  const focus = focused();
  const [shown, compared] = views.map((view) => view.shown);
  const toWords = (key, index) => toWord(trace[key], state.level, index);
  const word = focus && { row: toWords(rows, focus.row), column: toWords(columns, focus.column) };
  views[0].light(focus);
  views[1]?.light(word);
  pair.light(shown, rows, columns, focus);
  const both = compared && word && word.row >= 0 && word.column >= 0;
  const other = both ? { name: trace.evidence[state.evidence].name, value: compared.at(word.row, word.column) } : null;
  showSummary(summary, shown, focus, other);
  if (!steps) return;
  const row = rows === "target" ? (state.pointed?.row ?? -1) : -1;
  if (row >= 0) steps.show(state.level === "words" ? Math.max(trace.target.groups.indexOf(row), 0) : row);
  else steps.show(state.step === null ? null : state.step - 1);
}

/** Show the answer up to the current step. */
function reveal() {
  const { target } = current();
  const units = state.step ?? target.units.length;
  const count = (key, level) => {
    if (key !== "target" || state.step === null) return Infinity;
    return level === "words" ? target.groups[units - 1] + 1 : units;
  };
  views.forEach((view) => view.reveal(
    Math.min(count(view.keys[0], view.shown.level), view.shown.height),
    Math.min(count(view.keys[1], view.shown.level), view.shown.width)));
  pair.reveal(units);
}

function goTo(step) {
  state.step = step;
  state.pointed = null;
  reveal();
  light();
}

function choose(changes) {
  Object.assign(state, changes, { pointed: null });
  renderChoices();
  renderPair();
  renderStage();
}

function renderChoices() {
  const focusedName = document.activeElement?.name;
  const trace = current();
  const chosen = attended();
  const mean = (count) => [[-1, "mean"], ...range(count).map((index) => [index, String(index)])];
  const kinds = [["grid", "Grid"], ["links", "Links"]];
  const choices = [makeChoice("", "view", kinds, state.view, (view) => choose({ view }))];
  const add = (there, ...rest) => there && choices.push(makeChoice(...rest));
  add(pieced, "", "level", [["words", "Words"], ["units", "Pieces"]], state.level, (level) => choose({ level }));
  add(trace.attentions.length > 1, "Attention", "attention",
    trace.attentions.map(({ name }, index) => [index, NAMES[name]]), state.attention,
    (attention) => choose({ attention, layer: -1, head: -1 }));
  add(chosen?.layers > 1, "Layer", "layer", mean(chosen?.layers), state.layer, (layer) => choose({ layer }));
  add(chosen?.heads > 1, "Head", "head", mean(chosen?.heads), state.head, (head) => choose({ head }));
  const others = trace.evidence.map(({ name, agreement }, index) => [index, `${name} · agreement ${number(agreement)}`]);
  add(trace.evidence.length > 0 && looksAcross(), "Compare with", "evidence",
    [[-1, "nothing"], ...others], state.evidence, (evidence) => choose({ evidence }));
  slots.choices.replaceChildren(...choices);
  if (focusedName) slots.choices.querySelector(`select[name="${focusedName}"], input[name="${focusedName}"]:checked`)?.focus();
}

const looksAcross = () => attended()?.rows === "target" && attended()?.columns === "source";

function renderPair() {
  pair = makePair(current(), state.level, (key, index) => {
    if (index === null || !attended()) return point(null);
    const { rows, columns } = attended();
    return point(key === rows ? { row: index, column: -1 } : key === columns ? { row: -1, column: index } : null);
  });
  slots.pair.replaceChildren(pair.element);
}

function renderStage() {
  const trace = current();
  const stage = slots.stage;
  views = [];
  if (!attended() || !trace.source.units.length || !trace.target.units.length) {
    stage.replaceChildren(make("p", { class: "hint" }, "There are no weights to show."));
    return;
  }
  const comparing = state.evidence >= 0 && looksAcross();
  const shown = attentionPicture(trace, state);
  work.classList.toggle("aside", Boolean(steps) && !comparing && main.clientWidth >= 960 && shown.width <= 24);
  const width = Math.max(stage.clientWidth, 240) - 6;
  const room = comparing && width > 860 ? (width - 42) / 2 : width;
  const Kind = state.view === "grid" ? Grid : Links;
  const options = { room, whole: state.whole, point, label: "Weights: arrow keys move from word to word" };
  views.push(Object.assign(new Kind(shown, options), { keys: [attended().rows, attended().columns] }));
  const figures = [figure(views[0], comparing ? [make("strong", {}, "Weights")] : null)];
  if (comparing) {
    const { name, agreement } = trace.evidence[state.evidence];
    const back = (focus) => point(focus && {
      row: fromWord(trace.target, state.level, focus.row), column: fromWord(trace.source, state.level, focus.column),
    });
    const other = new Grid(evidencePicture(trace, state.evidence), { room, point: back, label: name });
    views.push(Object.assign(other, { keys: ["target", "source"] }));
    const agreeing = make("strong", { class: "number" }, number(agreement));
    figures.push(figure(views[1], [make("strong", {}, name), " · agreement with the weights ", agreeing]));
  }
  stage.replaceChildren(...figures);
  views.forEach((view) => view.settle());
  /* so that nothing jumps while it plays */
  if (learning) stage.style.setProperty("min-height", `${stage.offsetHeight}px`);
  reveal();
  light();
}

function figure(view, caption) {
  const whole = state.view === "grid" && (view.scrolls || state.whole)
    ? make("button", {
      type: "button", class: "button", "aria-pressed": String(state.whole), click: () => choose({ whole: !state.whole }),
    }, "Whole picture")
    : null;
  return make("figure", { class: state.view === "links" && !caption ? "wide" : null },
    caption ? make("figcaption", {}, ...caption) : null, make("div", { class: "scroll" }, view.element),
    make("div", { class: "choices foot" }, legend(view.shown), whole));
}

/** Another sentence, or the same at another time. */
function render() {
  const trace = current();
  const validIndex = (index, count) => (index < count ? index : -1);
  const attention = Math.max(validIndex(state.attention, trace.attentions.length), 0);
  Object.assign(state, { step: null, pointed: null, attention });
  state.layer = validIndex(state.layer, attended()?.layers ?? 0);
  state.head = validIndex(state.head, attended()?.heads ?? 0);
  state.evidence = validIndex(state.evidence, trace.evidence.length);
  steps?.player.stop();
  steps = !learning && trace.target.units.length > 1 ? makeSteps(trace, goTo) : null;
  slots.steps.replaceChildren(...(steps ? [steps.element] : []));
  const below = [makeCandidates(trace), makeAltered(trace), makeCard(data.cards[trace.card])].filter(Boolean);
  slots.below.replaceChildren(make("div", { class: "below" }, below));
  renderPair();
  renderChoices();
  renderStage();
}

const time = learning ? makeTime(data.moments, (moment) => ((state.moment = moment), render())) : null;
const list = data.traces[0].length > 1
  ? makeList(data.traces[data.traces.length - 1], (sentence) => {
    state.sentence = sentence;
    slots.stage.style.removeProperty("min-height");
    list.show(sentence);
    render();
  })
  : null;

function begin() {
  document.documentElement.classList.toggle("framed", window.parent !== window);
  main.append(slots.pair, slots.choices, summary, work, slots.below, makeKeys());
  document.getElementById("page").append(
    ...(time ? [time.element] : []), make("div", { class: list ? "several" : null }, list?.element, main));
  list?.show(0);
  time?.show();
  render();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => ((ramps = null), renderStage()));
  let width = main.clientWidth;
  new ResizeObserver(() => {
    if (main.clientWidth === width) return;
    width = main.clientWidth;
    time?.show();
    renderStage();
  }).observe(main);
  if (window.parent !== window) new ResizeObserver(fit).observe(document.body);
}

/** A frame takes the height of what is in it, where it may. */
function fit() {
  try {
    const { height } = document.body.getBoundingClientRect();
    if (window.frameElement) window.frameElement.style.height = `${Math.ceil(height) + 2}px`;
  } catch {
    /* framed by another site: its height stays as it was given */
  }
}

document.addEventListener("keydown", (event) => {
  if (event.target.matches?.("select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const player = learning ? time.player : steps?.player;
  if (event.key === ",") player?.by(-1);
  if (event.key === ".") player?.by(1);
  if (event.key === "Escape" && steps) {
    steps.player.stop();
    steps.player.set(current().target.units.length);
    goTo(null);
  }
});
begin();
