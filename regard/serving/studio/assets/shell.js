/* The frame of the page: navigation between the views, the choice of a model, and the view that is shown.

   The address names the view and its parameters: #/translate?text=Hello&model=toy. A view is a module views/NAME.js:

     title                    its name in the navigation
     task                     "translate" or "classify" where it works on one model of that task, else null
     available(models)        whether it has what it needs; models as GET /api/models lists them
     hint                     optional: what to start if it is not available
     mount(element, context)  shows the view in an empty element; returns (or promises) a function that ends it

   The context: `api` (api.js; its requests end with the view), `models`, `model` (the chosen one of the view's task, or
   null), `parameters` (of the address, URLSearchParams), `replace(parameters)` (notes parameters in the address, null
   removes one; the view stays), `navigate(view, parameters)`, `announce(text)` for screen readers,
   `download(name, blob)`, `refresh()` (lists the models again), `signal` (aborted when the view ends). Choosing another
   model mounts the view again, with its parameters. */

import { make } from "../look/drawing.js";
import { makeApi } from "./api.js";

const VIEWS = [
  "translate",
  "look",
  "learn",
  "compare",
  "corpus",
  "train",
  "classify",
  "patterns",
];

const parts = ["views", "model", "content", "announcement"];
const page = Object.fromEntries(parts.map((id) => [id, document.getElementById(id)]));
let models = [];
let views = {}; /* name → module */
let shown = null; /* {name, ending: AbortController, unmount} */

/** The view and the parameters of the address. */
function route() {
  const [, name, query] = /^#\/(\w*)(?:\?(.*))?$/.exec(location.hash) ?? [];
  return { name: name in views ? name : VIEWS[0], parameters: new URLSearchParams(query ?? "") };
}

const address = (name, parameters) => {
  const query = new URLSearchParams(parameters).toString();
  return `#/${name}${query ? `?${query}` : ""}`;
};

function navigate(name, parameters = {}) {
  const next = address(name, parameters);
  if (next === location.hash) show();
  else location.hash = next;
}

/** Note changes of the parameters in the address; the view stays. */
function replace(changes) {
  const { name, parameters } = route();
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") parameters.delete(key);
    else parameters.set(key, value);
  }
  history.replaceState(null, "", address(name, parameters));
  showNavigation(name, parameters);
}

function download(name, blob) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function announce(text) {
  if (page.announcement.textContent !== text) page.announcement.textContent = text;
}

const modelsOf = (task) => models.filter((model) => model.task === task);

/** The model of the address, or else the first of the view's task. */
function chosenModel(view, parameters) {
  const all = modelsOf(view.task);
  return all.find(({ name }) => name === parameters.get("model")) ?? all[0] ?? null;
}

export function describeModel({ name, languages }) {
  return languages ? `${name} · ${languages.join(" → ")}` : name;
}

/** The text and the model go along from view to view. */
function showNavigation(current, parameters) {
  const shared = Object.fromEntries([...parameters].filter(([key]) => key === "text" || key === "model"));
  const links = VIEWS.map((name) => make("a", {
    href: address(name, shared), "aria-current": name === current ? "page" : null,
    class: views[name].available(models) ? null : "unavailable",
  }, views[name].title));
  page.views.replaceChildren(...links);
  /* sideways only: scrollIntoView would move the page, too */
  const here = links[VIEWS.indexOf(current)];
  page.views.scrollLeft = here.offsetLeft - (page.views.clientWidth - here.offsetWidth) / 2;
}

function showModels(view, model, parameters) {
  const all = modelsOf(view.task);
  if (!model) return page.model.replaceChildren();
  if (all.length === 1) return page.model.replaceChildren(make("span", { class: "what" }, describeModel(model)));
  const options = all.map((each) =>
    make("option", { value: each.name, selected: each === model }, describeModel(each)));
  const choose = (event) => navigate(route().name, { ...Object.fromEntries(parameters), model: event.target.value });
  return page.model.replaceChildren(make("label", { class: "choice" }, make("span", { class: "what" }, "Model"),
    make("select", { change: choose }, options)));
}

/** List the models again: one was trained. */
async function refresh() {
  models = await makeApi().get("/api/models");
  const { name, parameters } = route();
  showNavigation(name, parameters);
  showModels(views[name], chosenModel(views[name], parameters), parameters);
}

/** What stands in place of a view that cannot be shown. */
function explain(title, text, kind = "note") {
  return make("section", { class: `panel ${kind}` }, make("h1", {}, title), make("p", {}, text));
}

function leave() {
  shown?.ending.abort();
  shown?.unmount?.();
  shown = null;
  page.content.replaceChildren();
}

async function show() {
  leave();
  const { name, parameters } = route();
  const view = views[name];
  const model = chosenModel(view, parameters);
  document.title = `${view.title} · Regard studio`;
  document.body.dataset.view = name;
  showNavigation(name, parameters);
  showModels(view, model, parameters);
  if (!view.available(models)) {
    page.content.append(explain(view.title, view.hint ?? "No model that is loaded can do this."));
    return;
  }
  const ending = new AbortController();
  const current = { name, ending, unmount: null };
  shown = current;
  const element = make("div", { class: `view view-${name}` });
  page.content.append(element);
  const { signal } = ending;
  const context = {
    api: makeApi(signal), models, model, parameters, replace, navigate, announce, download, refresh, signal,
  };
  try {
    const unmount = await view.mount(element, context);
    if (shown === current) current.unmount = unmount;
    else unmount?.();
  } catch (error) {
    if (shown === current) element.replaceChildren(explain("This view could not be shown.", error.message, "problem"));
  }
}

async function begin() {
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); /* the address belongs to the views */
    page.content.focus();
  });
  try {
    const modules = await Promise.all(VIEWS.map((name) => import(`./views/${name}.js`)));
    views = Object.fromEntries(VIEWS.map((name, index) => [name, modules[index]]));
    models = await makeApi().get("/api/models");
  } catch (error) {
    page.content.replaceChildren(explain("The studio could not start.", error.message, "problem"));
    return;
  }
  window.addEventListener("hashchange", show);
  await show();
}

begin();
