// A memory in full, with its provenance.
import { get } from "./api.js";
import { fill, h, prose, time } from "./dom.js";
import { dayName, hour, inFull, sentence } from "./format.js";
import { forget, undo } from "./forget.js";
import { family, icon, mark } from "./icons.js";
import { markdown } from "./markdown.js";
import { provenance } from "./provenance.js";
import * as revise from "./revise.js";
import { go, reload, trouble, waiting } from "./router.js";
import { address, isSame, item, kindOf, label, marks, story } from "./rows.js";
import { copyButton } from "./selection.js";
import { copyText } from "./toast.js";

export default async function detail(main, { wanted: name }) {
  const kind = kindOf(name);
  const id = name.replace(/^\D/, "");
  let found;
  try {
    found = await get(`/api/${kind}/${id}`);
  } catch (error) {
    if (error.status !== 410) throw error;
    return forgotten(main, name, error);
  }
  const memory = item(found, kind);
  const away = () => (history.state?.isInside ? history.back() : go("/"));
  const copy = () => copyText(markdown(memory), "Copied as Markdown");
  const take = () => forget(memory, away);
  main.classList.add("detail", `is-${family(kind, memory.type)}`);
  main.append(head(memory, copy, take), h("article", { class: "prose" }, BODIES[kind](memory)));
  const others = h("section", { class: "related", "aria-label": "Related" });
  main.append(others);
  const keys = { y: copy, x: take };
  neighbours(name).then((links) => {
    main.querySelector(".crumbs")?.append(h("span", { class: "neighbours" }, links));
    for (const link of links) keys[link.dataset.key] = () => go(link.getAttribute("href"));
  }, () => {});
  // Without vectors there is nothing to show. That is not an error.
  get(`/api/memory/${name}/related`).then((found) => fill(others, related(found)), () => {});
  if (kind !== "prompt") {
    const place = h("section", { class: "provenance", "aria-label": "Where it comes from" }, waiting());
    main.append(place);
    get(`/api/${kind}/${id}/provenance`).then(
      (from) => fill(place, provenance(memory, from)),
      (error) => fill(place, trouble(error)),
    );
  }
  if (kind === "observation") {
    keys.e = () => revise.edit(memory);
    keys.p = () => (memory.is_pinned ? revise.unpin : revise.pin)(memory);
  }
  return { title: memory.headline ?? label(kind), keys, up: "/" };
}

/** Links to the memories before and after it in its project. */
async function neighbours(name) {
  const { moments } = await get("/api/timeline", { anchor: name, depth_before: 1, depth_after: 1 });
  const at = moments.findIndex(({ id }) => id === name);
  const link = (moment, key, text) =>
    moment &&
    h(
      "a",
      { href: address(moment.id), title: moment.title, "aria-keyshortcuts": key, data: { key } },
      text,
    );
  return [link(moments[at - 1], "[", "Earlier"), link(moments[at + 1], "]", "Later")].filter(Boolean);
}

/** A memory next to a list. */
export const preview = (memory) =>
  h(
    "article",
    { class: `prose detail is-${family(memory.kind, memory.type)}` },
    kicker(memory),
    h(
      "h2",
      null,
      h("a", { href: address(memory.name) }, memory.kind === "prompt" ? "Prompt" : prose(memory.headline || "Untitled")),
    ),
    memory.subtitle && h("p", { class: "subtitle" }, prose(memory.subtitle)),
    memory.wrong?.because && h("p", { class: "subtitle" }, "Wrong: ", prose(memory.wrong.because)),
    meta(memory),
    BODIES[memory.kind](memory),
    h("p", { class: "actions" }, h("a", { class: "button", href: address(memory.name) }, "Open")),
  );

/** A memory that was forgotten, with an undo button if possible. */
function forgotten(main, name, { message, meaning, body }) {
  const restore = async () => (await undo(body.forgetting, name)) && reload();
  main.append(
    h(
      "div",
      { class: "empty" },
      icon("forget"),
      h("h1", null, body.forgetting ? "You forgot this memory" : message),
      h("p", null, body.forgetting ? `Memory ${name} is hidden. ${sentence(meaning)}` : `Probably: ${meaning}.`),
      h(
        "p",
        { class: "actions" },
        body.forgetting &&
          h("button", { type: "button", class: "button primary", on: { click: restore } }, "Undo"),
        h("a", { class: "button", href: "/log#forgotten" }, "All that was forgotten"),
      ),
    ),
  );
  return { title: "Forgotten", up: "/" };
}

/** Memories of the same project about the same subject. */
function related(found) {
  if (found.length === 0) return null;
  return [
    h("h2", { class: "rule" }, "Related"),
    h(
      "ul",
      { class: "points" },
      found.map(({ id, kind, title }) =>
        h(
          "li",
          null,
          h("span", { class: "hidden" }, `${label(kind)}: `),
          h("a", { href: address(id) }, prose(title || "Untitled")),
        ),
      ),
    ),
  ];
}

function head(memory, copy, take) {
  return h(
    "header",
    { class: "head" },
    h(
      "p",
      { class: "crumbs" },
      h("a", { href: "/" }, "Feed"),
      icon("next"),
      h("a", { href: `/?project=${encodeURIComponent(memory.project)}` }, memory.project),
      h("a", { class: "side-link", href: `/p/${encodeURIComponent(memory.project)}` }, "Overview"),
    ),
    kicker(memory),
    h("h1", null, memory.kind === "prompt" ? "Prompt" : prose(memory.headline || "Untitled")),
    memory.subtitle && h("p", { class: "subtitle" }, prose(memory.subtitle)),
    memory.wrong?.because && h("p", { class: "subtitle" }, "Wrong: ", prose(memory.wrong.because)),
    meta(memory),
    h(
      "p",
      { class: "actions" },
      copyButton(copy),
      memory.kind === "observation" && corrections(memory),
      h(
        "button",
        { type: "button", class: "button quiet danger", "aria-keyshortcuts": "x", on: { click: take } },
        icon("forget"),
        "Forget",
      ),
    ),
  );
}

/** Type, number and marks. */
const kicker = (memory) =>
  h(
    "p",
    { class: "kicker" },
    mark(memory.kind, memory.type),
    h("span", { class: "type" }, label(memory.kind, memory.type)),
    h("span", null, memory.kind === "observation" ? `#${memory.id}` : memory.name),
    marks(memory).map((text) => h("span", { class: "badge" }, text)),
  );

/** Time, session and author. */
const meta = (memory) =>
  h(
    "p",
    { class: "meta" },
    time(memory.at, `${dayName(memory.at)}, ${hour(memory.at)}`, inFull(memory.at)),
    memory.session &&
      h(
        "a",
        { href: story(memory.session, memory.name) },
        memory.prompt_number ? `Prompt ${memory.prompt_number} of its session` : "Its session",
      ),
    memory.client && h("span", { class: "client" }, memory.client),
    memory.origin === "user" && h("span", null, "written by hand"),
    memory.origin === "claude" && h("span", null, "written by Claude"),
    memory.origin === "program" && h("span", null, "written by a program"),
    memory.origin === "import" && h("span", null, "imported"),
  );

/** The buttons that correct an observation. */
function corrections(memory) {
  const button = (sign, text, run) =>
    h("button", { type: "button", class: "button", on: { click: () => run(memory) } }, icon(sign), text);
  return [
    button("edit", "Edit", revise.edit),
    memory.is_pinned ? button("pin", "Unpin", revise.unpin) : button("pin", "Pin", revise.pin),
    memory.wrong || memory.correction
      ? button("check", "Not wrong", revise.restore)
      : button("alert", "Mark as wrong", revise.wrong),
  ];
}

const BODIES = {
  observation: (memory) => [
    memory.narrative && !isSame(memory.narrative, memory.headline) && h("p", null, prose(memory.narrative)),
    memory.facts.length > 0 &&
      h(
        "ul",
        { class: "points" },
        memory.facts.map((fact) => h("li", null, prose(fact))),
      ),
    files("Modified", memory.files_modified),
    files(
      "Read",
      memory.files_read.filter((file) => !memory.files_modified.includes(file)),
    ),
    memory.concepts.length > 0 &&
      h(
        "ul",
        { class: "chips", "aria-label": "Concepts" },
        memory.concepts.map((concept) =>
          h("li", null, h("a", { class: "chip", href: `/?concept=${encodeURIComponent(concept)}` }, concept)),
        ),
      ),
  ],
  summary: (memory) => [
    part("Investigated", memory.investigated),
    part("Learned", memory.learned),
    part("Completed", memory.completed),
    part("Next steps", memory.next_steps),
    part("Notes", memory.notes),
    files("Edited", memory.files_edited),
    files(
      "Read",
      memory.files_read.filter((file) => !memory.files_edited.includes(file)),
    ),
  ],
  prompt: (memory) => [h("blockquote", { class: "prompt-text" }, memory.prompt_text || "(private)")],
};

const part = (title, text) => text && h("section", null, h("h2", null, title), h("p", null, prose(text)));

function files(title, paths) {
  return (
    paths.length > 0 &&
    h(
      "section",
      { class: "files" },
      h("h2", null, title),
      h(
        "ul",
        null,
        paths.map((path) =>
          h(
            "li",
            { data: { file: path } },
            icon("file"),
            h(
              "a",
              { href: `/?file=${encodeURIComponent(path)}`, title: "Everything about this file" },
              h("code", null, path),
            ),
          ),
        ),
      ),
    )
  );
}
