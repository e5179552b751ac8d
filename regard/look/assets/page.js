/* The page of traces: an explorer of what the page holds. */

import { makeExplorer } from "./explorer.js";

const isFramed = window.parent !== window;

/** A frame takes the height of what is in it, where it may. */
function fitFrame() {
  try {
    const { height } = document.body.getBoundingClientRect();
    if (window.frameElement) window.frameElement.style.height = `${Math.ceil(height) + 2}px`;
  } catch {
    /* framed by another site: its height stays as it was given */
  }
}

document.documentElement.classList.toggle("framed", isFramed);
const explorer = makeExplorer(JSON.parse(document.getElementById("data").textContent), { main: "main" });
document.getElementById("page").append(explorer.element);
explorer.render();
if (isFramed) new ResizeObserver(fitFrame).observe(document.body);
