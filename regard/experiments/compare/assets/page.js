/* The page of a comparison that loads nothing: what it holds, drawn again where colours or the width change. */

import { showComparison } from "./compare.js";

const content = JSON.parse(document.getElementById("data").textContent);
const render = showComparison(document.getElementById("page"), content);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
let width = document.body.clientWidth;
new ResizeObserver(() => {
  if (document.body.clientWidth === width) return;
  width = document.body.clientWidth;
  render();
}).observe(document.body);
