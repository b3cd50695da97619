// Memories in lists: one row each, grouped by turn and by day.
import { h, prose, time } from "./dom.js";
import { ago, cut, dayDate, dayName, dayOf, hour, inFull, many, openEnd } from "./format.js";
import { family, icon, mark } from "./icons.js";

/** Row ids of other machines begin with the number of the machine. */
const ROWS_PER_HOST = 1_000_000_000;
export const hostOf = (memory) => Math.floor(Number(String(memory.name).replace(/^\D/, "")) / ROWS_PER_HOST);

/** Converts a row from the worker to the field names of this page. */
export function item(from, kind = from.kind) {
  const name = { observation: "", summary: "S", prompt: "P" }[kind] + from.id;
  const headline = from.title ?? from.request ?? from.prompt_text ?? from.narrative;
  const text = { observation: from.subtitle || from.narrative || from.facts?.[0], prompt: "" }[kind];
  return {
    ...from,
    kind,
    name,
    at: from.created_at_epoch,
    session: from.content_session_id,
    headline,
    text: isSame(text, headline) ? "" : text,
  };
}

/** The same for a search hit. */
export function hit(from) {
  const { id: name, created_at_epoch: at, title: headline, snippet } = from;
  return { ...from, name, at, headline, text: isSame(snippet, headline) ? "" : snippet };
}

/** Whether a text only repeats the title. A missing title is made from the start of the text. */
export function isSame(text, title) {
  const plain = (words) => (words ?? "").replace(/[\s.…]+/gu, " ").trim().toLowerCase();
  return plain(text) === plain(title);
}

const KINDS = { S: "summary", P: "prompt" };
/** The kind of a memory by its name: `12`, `S3`, `P9`. */
export const kindOf = (name) => KINDS[name[0]] ?? "observation";
export const address = (name) => `/m/${name}`;
export const story = (session, name) => `/s/${encodeURIComponent(session)}${name ? `#${name}` : ""}`;

/** The label of a kind or type. */
export function label(kind, type) {
  if (kind !== "observation") return kind;
  return (type || "memory").replaceAll("_", " ");
}

/** The marks of a memory as text. */
export function marks({ is_pinned: isPinned, is_edited: isEdited, is_superseded: isSuperseded, wrong, correction }) {
  return [
    isPinned && "pinned",
    isEdited && "edited",
    wrong && "wrong",
    !wrong && (isSuperseded || correction) && "superseded",
  ].filter(Boolean);
}

/** One memory in a list. `look` has the searched words, and whether rows are grouped by day and by turn. */
export function row(memory, look = {}) {
  const isInTurn = look.isByTurn && isOfTurn(memory);
  const when = look.isByDay ? hour(memory.at) : ago(memory.at);
  const [headline, body] =
    isInTurn && memory.kind === "summary" ? ending(memory, look) : content(memory, look, isInTurn);
  return h(
    "li",
    {
      class: `row is-${family(memory.kind, memory.type)} kind-${memory.kind}${isInTurn ? " in-turn" : ""}`,
      data: { name: memory.name },
    },
    look.isByDay &&
      h("span", { class: "when" }, time(memory.at, when, inFull(memory.at))),
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
      body,
      meta(memory, look, when, isInTurn),
    ),
  );
}

/** Whether it belongs to a turn of a session. */
const isOfTurn = (memory) => Boolean(memory.session && memory.prompt_number);

/** The headline and the text of a memory. Text of the built-in rules may repeat the request, which a turn shows. */
function content(memory, look, isInTurn) {
  const text = isInTurn && memory.text?.startsWith("Asked: ") ? "" : memory.text;
  const headline = cut(memory.headline || "(private)", memory.kind === "prompt" ? 280 : 200);
  const body =
    memory.kind === "summary" && memory.learned !== undefined
      ? parts(memory, look, ["completed", "learned", "next_steps"])
      : text && h("p", { class: "text" }, prose(cut(text, 260), look.words));
  return [headline, body];
}

/** A summary below the prompt that it repeats: the outcome of the turn. */
function ending(summary, look) {
  const first = ["completed", "learned", "investigated", "request"].find((name) => summary[name]);
  const rest = ["learned", "next_steps"].filter((name) => name !== first);
  return [cut(summary[first] || "Summary", 260), parts(summary, look, rest)];
}

const PARTS = { completed: "Done", learned: "Learned", next_steps: "Next" };

function parts(summary, look, names) {
  return names.map((name) => {
    const text = name === "next_steps" ? openEnd(summary[name]) : summary[name]?.trim().replace(/\s*\n\s*/g, "; ");
    return (
      text &&
      h("p", { class: "text" }, h("b", null, PARTS[name]), " ", prose(cut(text, 200), look.words))
    );
  });
}

function meta(memory, look, when, isInTurn) {
  const files = new Set([
    ...(memory.files_modified ?? []),
    ...(memory.files_edited ?? []),
    ...(memory.files_read ?? []),
  ]).size;
  const isHead = !isInTurn || memory.kind === "prompt";
  return h(
    "p",
    { class: "meta" },
    !(isInTurn && memory.kind !== "observation") &&
      h("span", { class: "type" }, label(memory.kind, memory.type)),
    !look.isByDay && time(memory.at, when, inFull(memory.at)),
    isHead &&
      look.project !== memory.project &&
      memory.project &&
      h("a", { href: `/?project=${encodeURIComponent(memory.project)}` }, memory.project),
    isHead &&
      memory.client &&
      h("a", { class: "client", href: `/?client=${encodeURIComponent(memory.client)}` }, memory.client),
    isHead &&
      memory.session &&
      !look.session &&
      h(
        "a",
        { href: story(memory.session, memory.name) },
        memory.prompt_number ? `Session, prompt ${memory.prompt_number}` : "Session",
      ),
    isHead && look.hosts?.[hostOf(memory)] && h("span", null, look.hosts[hostOf(memory)]),
    files > 0 && !(isInTurn && memory.kind === "summary") && h("span", null, many(files, "file")),
    memory.origin === "user" && h("span", null, "written by hand"),
    memory.origin === "claude" && h("span", null, "written by Claude"),
    memory.origin === "program" && h("span", null, "written by a program"),
    marks(memory).map((text) => h("span", { class: "badge" }, text)),
    h("span", { class: "id" }, memory.kind === "observation" ? `#${memory.name}` : memory.name),
  );
}

/** The placeholder for a prompt that is private, or not loaded yet. */
const turnOf = (memory, look) =>
  h(
    "p",
    { class: "meta turn-of" },
    look.project !== memory.project && h("span", null, memory.project),
    h("a", { href: story(memory.session, memory.name) }, `Session, prompt ${memory.prompt_number}`),
  );

/** The order within a turn: the prompt, then observations by time, then the summary. */
const PLACES = { prompt: 0, observation: 1, summary: 2 };
const isBefore = (one, other) => {
  const place = PLACES[one.kind] - PLACES[other.kind];
  return (place || one.at - other.at || Number(one.id) - Number(other.id)) < 0;
};

/** Rows below the headings of their days, the newest turn first; or one list in the given order. */
export class Rows {
  constructor(look) {
    this.look = look;
    this.element = h("div", { class: "rows" });
    this.memories = new Map();
    this.days = new Map();
    this.turns = new Map();
  }

  get size() {
    return this.memories.size;
  }

  /** Appends rows. */
  append(memories) {
    this.oldest = memories.at(-1)?.at ?? this.oldest;
    for (const memory of memories) this.#put(memory, (day, group) => day.append(group));
  }

  /** Inserts a new memory at the position of its time. Returns whether it was new. */
  insert(memory) {
    return this.#put(
      memory,
      (day, group) => {
        const behind = [...day.children].find(
          (other) => other.matches(".turn-group") && Number(other.dataset.at) <= memory.at,
        );
        day.insertBefore(group, behind ?? null);
      },
      "is-fresh",
    );
  }

  #put(memory, place, style) {
    if (this.memories.has(memory.name)) return false;
    this.memories.set(memory.name, memory);
    const made = row(memory, this.look);
    if (style) made.classList.add(style);
    const key =
      this.look.isByTurn && isOfTurn(memory) ? `${memory.session} ${memory.prompt_number}` : memory.name;
    const known = this.turns.get(key);
    if (known) {
      const behind = [...known.children].find((other) =>
        isBefore(memory, this.memories.get(other.dataset.name)),
      );
      known.insertBefore(made, behind ?? null);
      return true;
    }
    const list = h("ol", { class: "list" }, made);
    this.turns.set(key, list);
    const isTurn = key !== memory.name;
    place(
      this.#day(this.look.isByDay ? dayOf(memory.at) : 0),
      h("div", { class: "turn-group", data: { at: memory.at } }, isTurn && turnOf(memory, this.look), list),
    );
    return true;
  }

  #day(day) {
    const known = this.days.get(day);
    if (known) return known;
    const heading = this.look.isByDay && dayHeading(day);
    const section = h("section", { class: "day", data: { day } }, heading);
    const older = [...this.days.keys()].filter((other) => other < day).sort((a, b) => b - a)[0];
    this.element.insertBefore(section, older === undefined ? null : this.days.get(older));
    this.days.set(day, section);
    return section;
  }
}

/** The heading of a day. */
export const dayHeading = (day) => h("h2", null, dayName(day), " ", h("span", null, dayDate(day)));

/** The switch between compact rows (one line each) and comfortable rows. */
export function densitySwitch() {
  const root = document.documentElement;
  const isCompact = () => root.dataset.density === "compact";
  const button = h("button", { type: "button", class: "icon", name: "density" });
  const draw = () => {
    button.replaceChildren(icon("compact"));
    button.setAttribute("aria-pressed", String(isCompact()));
    button.setAttribute("aria-label", "Compact list");
    button.title = isCompact() ? "Show more of each memory" : "Show one line for each memory";
  };
  button.addEventListener("click", () => {
    if (isCompact()) delete root.dataset.density;
    else root.dataset.density = "compact";
    try {
      localStorage.setItem("density", isCompact() ? "compact" : "");
    } catch {
      // Without storage the choice lasts until the page is closed.
    }
    draw();
  });
  draw();
  return button;
}
