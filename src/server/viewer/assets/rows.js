// Memories in lists: one row each, and lists of them by day.
import { h, prose, time } from "./dom.js";
import { ago, cut, dayDate, dayName, dayOf, hour, inFull, many } from "./format.js";
import { family, mark } from "./icons.js";

/** A row of the worker's, under the names that this page uses. */
export function item(from, kind = from.kind) {
  const name = { observation: "", summary: "S", prompt: "P" }[kind] + from.id;
  return {
    ...from,
    kind,
    name,
    at: from.created_at_epoch,
    session: from.content_session_id,
    headline: from.title ?? from.request ?? from.prompt_text ?? from.narrative,
    text: { observation: from.subtitle || from.narrative || from.facts?.[0], prompt: "" }[kind],
  };
}

/** A hit of a search, likewise. */
export function hit(from) {
  return { ...from, name: from.id, at: from.created_at_epoch, headline: from.title, text: from.snippet };
}

export const address = (name) => `/m/${name}`;
export const story = (session, name) => `/s/${encodeURIComponent(session)}${name ? `#${name}` : ""}`;

/** What a kind or type is called. */
export function label(kind, type) {
  if (kind !== "observation") return kind;
  return (type || "memory").replaceAll("_", " ");
}

/** How a memory is marked, in words. */
export function marks({ is_pinned: isPinned, is_edited: isEdited, is_superseded: isSuperseded, wrong, correction }) {
  return [
    isPinned && "pinned",
    isEdited && "edited",
    wrong && "wrong",
    !wrong && (isSuperseded || correction) && "superseded",
  ].filter(Boolean);
}

/** One memory in a list. `look` says what is searched for, and whether rows are by day. */
export function row(memory, look = {}) {
  const when = look.isByDay ? hour(memory.at) : ago(memory.at);
  const headline = cut(memory.headline || "(private)", memory.kind === "prompt" ? 280 : 200);
  return h(
    "li",
    { class: `row is-${family(memory.kind, memory.type)} kind-${memory.kind}`, data: { name: memory.name } },
    look.isByDay && h("span", { class: "when" }, time(memory.at, when, inFull(memory.at))),
    mark(memory.kind, memory.type),
    h(
      "div",
      { class: "what" },
      h(
        "a",
        { class: "headline", href: address(memory.name), data: { row: memory.name } },
        h("span", { class: "hidden" }, `${label(memory.kind, memory.type)}: `),
        prose(headline, look.words),
      ),
      memory.kind === "summary" && memory.learned !== undefined
        ? outcome(memory, look)
        : memory.text && h("p", { class: "text" }, prose(cut(memory.text, 260), look.words)),
      meta(memory, look, when),
    ),
  );
}

/** What a turn came to, in a few words. */
function outcome(summary, look) {
  const part = (name, text) =>
    text && h("p", { class: "text" }, h("b", null, name), " ", prose(cut(text, 200), look.words));
  const steps = summary.next_steps?.trim().replace(/\s*\n\s*/g, "; ");
  return [
    part("Done", summary.completed),
    part("Learned", summary.learned),
    part("Next", steps),
  ];
}

function meta(memory, look, when) {
  const files = new Set([
    ...(memory.files_modified ?? []),
    ...(memory.files_edited ?? []),
    ...(memory.files_read ?? []),
  ]).size;
  return h(
    "p",
    { class: "meta" },
    h("span", { class: "type" }, label(memory.kind, memory.type)),
    !look.isByDay && time(memory.at, when, inFull(memory.at)),
    look.project !== memory.project &&
      memory.project &&
      h("a", { href: `/?project=${encodeURIComponent(memory.project)}` }, memory.project),
    memory.session &&
      !look.session &&
      h(
        "a",
        { href: story(memory.session, memory.name) },
        memory.prompt_number ? `prompt ${memory.prompt_number}` : "session",
      ),
    files > 0 && h("span", null, many(files, "file")),
    memory.origin === "user" && h("span", null, "written by hand"),
    memory.origin === "claude" && h("span", null, "written by Claude"),
    memory.origin === "program" && h("span", null, "written by a program"),
    marks(memory).map((text) => h("span", { class: "badge" }, text)),
    h("span", { class: "id" }, memory.kind === "observation" ? `#${memory.name}` : memory.name),
  );
}

/** Rows below the headings of their days, the newest first; or one list as it comes. */
export class Rows {
  constructor(look) {
    this.look = look;
    this.element = h("div", { class: "rows" });
    this.names = new Set();
    this.days = new Map();
  }

  get size() {
    return this.names.size;
  }

  /** Adds those that come behind. */
  append(memories) {
    this.oldest = memories.at(-1)?.at ?? this.oldest;
    for (const memory of memories) this.#put(memory, (list, made) => list.append(made));
  }

  /** Adds one that has just happened, where its time puts it. Tells whether it was new. */
  insert(memory) {
    return this.#put(memory, (list, made) => {
      const behind = [...list.children].find((other) => Number(other.dataset.at) <= memory.at);
      made.classList.add("is-fresh");
      list.insertBefore(made, behind ?? null);
    });
  }

  remove(name) {
    if (!this.names.delete(name)) return;
    const found = this.element.querySelector(`[data-name="${CSS.escape(name)}"]`);
    const day = found?.closest(".day");
    found?.remove();
    if (day && !day.querySelector("li")) {
      day.remove();
      this.days.delete(Number(day.dataset.day));
    }
  }

  #put(memory, add) {
    if (this.names.has(memory.name)) return false;
    this.names.add(memory.name);
    const made = row(memory, this.look);
    made.dataset.at = memory.at;
    add(this.#list(this.look.isByDay ? dayOf(memory.at) : 0), made);
    return true;
  }

  #list(day) {
    const known = this.days.get(day);
    if (known) return known;
    const list = h("ol", { class: "list" });
    const heading =
      this.look.isByDay &&
      h(
        "h2",
        null,
        dayName(day),
        " ",
        h("span", null, dayDate(day)),
      );
    const section = h("section", { class: "day", data: { day } }, heading, list);
    const older = [...this.days.keys()].filter((other) => other < day).sort((a, b) => b - a)[0];
    this.element.insertBefore(section, older === undefined ? null : this.days.get(older).parentNode);
    this.days.set(day, list);
    return list;
  }
}
