// Several memories of a list at once: selected with a key or a click, then copied or forgotten.
import { get, post, remove } from "./api.js";
import { fill, h } from "./dom.js";
import { many } from "./format.js";
import { icon } from "./icons.js";
import { markdown } from "./markdown.js";
import { item, kindOf } from "./rows.js";
import { complain, copyText, toast } from "./toast.js";

const place = (name) => `/api/${kindOf(name)}/${name.replace(/^\D/, "")}`;

/** A button that copies what the page shows. */
export function copyButton(copy) {
  return h(
    "button",
    { type: "button", class: "button", "aria-keyshortcuts": "y", on: { click: copy } },
    icon("copy"),
    "Copy as Markdown",
  );
}

export class Selection {
  /** `list` is the element that holds the rows. */
  constructor(list) {
    this.list = list;
    this.names = new Set();
    this.bar = h("div", { class: "selection", role: "status", hidden: true });
    this.keys = {
      v: () => this.#toggle(focused()),
      x: () => this.#forget(),
      y: () => this.#copy(),
    };
    list.addEventListener("click", (event) => {
      if (!event.shiftKey) return;
      event.preventDefault();
      event.stopPropagation();
      this.#toggle(event.target.closest("[data-name]")?.dataset.name);
    });
  }

  clear() {
    this.names.clear();
    this.#draw();
  }

  /** The selected memories; else the one with the focus. */
  #meant() {
    return this.names.size ? [...this.names] : [focused()].filter(Boolean);
  }

  #toggle(name) {
    if (!name) return;
    if (!this.names.delete(name)) this.names.add(name);
    this.#draw();
  }

  #draw() {
    for (const row of this.list.querySelectorAll("[data-name]"))
      row.classList.toggle("is-selected", this.names.has(row.dataset.name));
    this.bar.hidden = !this.names.size;
    const button = (sign, text, key, run) =>
      h("button", { type: "button", class: "button", "aria-keyshortcuts": key, on: { click: run } }, icon(sign), text);
    fill(
      this.bar,
      h("b", null, `${many(this.names.size, "memory", "memories")} selected`),
      button("copy", "Copy", "y", () => this.#copy()),
      button("forget", "Forget", "x", () => this.#forget()),
      button("close", "Clear", "", () => this.clear()),
    );
  }

  async #copy() {
    const names = this.#meant();
    if (!names.length) return;
    try {
      const found = await Promise.all(names.map((name) => get(place(name))));
      const texts = found.map((memory, at) => markdown(item(memory, kindOf(names[at]))));
      await copyText(texts.join("\n---\n\n"), `${many(names.length, "memory", "memories")} copied as Markdown`);
    } catch (error) {
      complain(error);
    }
  }

  async #forget() {
    const names = this.#meant();
    const done = [];
    try {
      for (const name of names) {
        // Forgetting a prompt also forgets what was distilled from it, which may be selected, too.
        const gone = await remove(place(name)).catch((error) =>
          error.status === 404 || error.status === 410 ? undefined : Promise.reject(error),
        );
        if (gone) done.push(gone.forgetting);
      }
    } catch (error) {
      complain(error);
    }
    this.clear();
    if (!done.length) return;
    toast(`${many(done.length, "memory", "memories")} forgotten`, { label: "Undo", run: () => restore(done) }, 12_000);
  }
}

async function restore(forgettings) {
  try {
    for (const id of forgettings) await post(`/api/forgettings/${encodeURIComponent(id)}/undo`);
    toast("Memories restored");
  } catch (error) {
    complain(error);
  }
}

const focused = () => document.activeElement?.closest?.("[data-name]")?.dataset.name;
