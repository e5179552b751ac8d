/* Train: the curves of a training, live, its samples and its attention; trainings are started, stopped and resumed. */

import { make } from "../../look/drawing.js";
import { makeProblem } from "../parts.js";
import { makeTrainingForm } from "../training_form.js";
import { makeRun } from "../training_run.js";

export const title = "Train";
export const task = null;
export const available = () => true;

const STATES = {
  running: "running", stopping: "stopping", finished: "finished", stopped: "stopped", failed: "failed",
  unfinished: "not finished",
};

export async function mount(element, { api, parameters, replace, announce, refresh, signal }) {
  const problem = makeProblem();
  const chooser = make("div", { class: "choices" });
  const place = make("div", {});
  const form = makeTrainingForm({ api, started: (run) => choose(run.name) });
  const beginning = make("details", { class: "panel begin" }, make("summary", {}, "Start a training"), form.element);
  element.append(chooser, problem.element, beginning, place);
  let run = null;

  /** List the trainings again, and show the chosen one if it is another. */
  async function list(chosen) {
    const { runs, active, refusal, recipes } = await api.get("/api/studio/training");
    form.show({ active, refusal, recipes });
    if (!runs.length) {
      beginning.open = true;
      return;
    }
    const name = runs.some((each) => each.name === chosen) ? chosen : active ?? runs[0].name;
    const options = runs.map((each) => make("option", { value: each.name, selected: each.name === name },
      `${each.name} · ${STATES[each.state]}`));
    chooser.replaceChildren(make("label", { class: "choice" }, make("span", { class: "what" }, "Training"),
      make("select", { change: (event) => choose(event.target.value) }, options)));
    if (run?.name !== name) open(name);
  }

  function open(name) {
    run?.destroy();
    run = makeRun(name, {
      api, problem, announce,
      changed: () => list(name).catch(problem.show),
      finished: () => refresh?.(),
    });
    place.replaceChildren(run.element);
    run.begin();
  }

  async function choose(name) {
    replace({ run: name });
    beginning.open = false;
    problem.show(null);
    try {
      await list(name);
    } catch (error) {
      problem.show(error);
    }
  }

  signal.addEventListener("abort", () => run?.destroy());
  await list(parameters.get("run"));
  return () => run?.destroy();
}
