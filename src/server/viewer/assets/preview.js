// The focused memory next to the list, on wide screens.
import { get } from "./api.js";
import { calm, fill, h } from "./dom.js";
import { item, kindOf } from "./rows.js";

/** The same width as in `rows.css`. */
const wide = matchMedia("(min-width: 1500px)");

export class Preview {
  /** `list` is the element that holds the rows. */
  constructor(list) {
    this.list = list;
    this.element = h("aside", { class: "preview", "aria-label": "Preview", tabindex: 0, hidden: true });
    this.load = calm(80, () => this.#load());
    this.onWidth = () => this.first();
    wide.addEventListener("change", this.onWidth);
    list.addEventListener("focusin", ({ target }) => this.#choose(target.closest("[data-name]")));
    // Pressing the mouse button moves the focus before the click event.
    list.addEventListener("pointerdown", () => (this.before = this.chosen));
    list.addEventListener("click", (event) => this.#click(event));
  }

  leave() {
    wide.removeEventListener("change", this.onWidth);
    this.asking?.abort();
  }

  /** Shows the first memory of a new list, unless one has the focus. */
  first() {
    this.chosen = undefined;
    const focused = document.activeElement?.closest?.("[data-name]");
    this.#show(focused && this.list.contains(focused) ? focused : this.list.querySelector("[data-name]"));
  }

  /** The first click shows a memory, the second opens it; Enter opens it at once. */
  #click(event) {
    const row = event.target.closest("a.headline")?.closest("[data-name]");
    const isPlain = event.detail > 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (!wide.matches || !row || !isPlain || row.dataset.name === this.before) return;
    event.preventDefault();
    event.stopPropagation();
  }

  #choose(row) {
    this.chosen = row?.dataset.name;
    this.#show(row);
  }

  #show(row) {
    this.element.hidden = !row || !wide.matches;
    this.list.querySelector(".is-shown")?.classList.remove("is-shown");
    if (this.element.hidden) return;
    row.classList.add("is-shown");
    this.name = row.dataset.name;
    this.load();
  }

  async #load() {
    const name = this.name;
    if (this.drawn === name) return;
    this.asking?.abort();
    this.asking = new AbortController();
    try {
      const { preview } = await import("./detail.js");
      const found = await get(`/api/${kindOf(name)}/${name.replace(/^\D/, "")}`, {}, this.asking.signal);
      this.drawn = name;
      fill(this.element, preview(item(found, kindOf(name))));
      this.element.scrollTop = 0;
    } catch (error) {
      // The list itself reports that the worker cannot be reached, or that a memory is gone.
      if (error.name !== "AbortError") this.element.hidden = true;
    }
  }
}
