/* What every picture has in common: pointing at it, moving the focus by keys, highlighting, and showing a part of it.

   A focus is {row, column}, −1 for all of them. A view answers `under(event)`, the focus under the pointer; `first()`;
   `next(key)`, where a key leads or null; `follow()`, which scrolls to the focus; and has `light` and `reveal`. */

export class View {
  /** `point(focus)` is called when something is pointed at, `point(null)` when no more; `press(focus)` for a click. */
  constructor(shown, { point, press = null }) {
    this.shown = shown;
    this.point = point;
    this.press = press;
    this.focus = null;
    this.revealedRows = shown.height;
  }

  /** Make `element` the view's own. */
  listen(element) {
    this.element = element;
    element.addEventListener("pointermove", (event) => this.point(this.under(event)));
    element.addEventListener("pointerdown", (event) => this.point(this.under(event)));
    element.addEventListener("pointerleave", (event) => event.pointerType === "touch" || this.point(null));
    element.addEventListener("focus", () => element.matches(":focus-visible") && this.point(this.first()));
    element.addEventListener("blur", () => this.point(null));
    element.addEventListener("click", (event) => this.press?.(this.under(event)));
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.press) this.press(this.focus);
      const next = this.next(event.key);
      if (!next) return;
      event.preventDefault();
      this.point(next);
      this.follow();
    });
  }

  /** Called when the view has its place on the page. */
  settle() {}
}
