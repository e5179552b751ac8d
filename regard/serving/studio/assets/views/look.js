/* Look: the explorer on a text of one's own. */

import { make } from "../../look/drawing.js";

export const title = "Look";
export const task = "translate";
export const available = (models) => models.some((model) => model.task === task);

export function mount(element) {
  element.append(make("h1", {}, title));
}
