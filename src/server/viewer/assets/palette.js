// The command palette: pages, projects, actions and memories, by typing.
import { get } from "./api.js";
import { calm, fill, h, prose } from "./dom.js";
import { cut } from "./format.js";
import { icon, mark } from "./icons.js";
import { go } from "./router.js";
import { address } from "./rows.js";
import { PAGES, projects } from "./sidebar.js";

const PROJECTS_MAX = 6;
const MEMORIES_MAX = 8;

/** Opens it. `actions` are those of the frame. */
export function open(actions) {
  if (document.querySelector("dialog[open]")) return;
  let found = [];
  let chosen = 0;
  let asked = 0;
  const input = h("input", {
    type: "text",
    name: "palette",
    role: "combobox",
    "aria-expanded": "true",
    "aria-controls": "palette-list",
    "aria-autocomplete": "list",
    "aria-label": "Go to a page, a project or a memory",
    placeholder: "Go to a page, a project or a memory",
    autocomplete: "off",
    spellcheck: "false",
    autofocus: true,
  });
  const list = h("ul", { id: "palette-list", role: "listbox", "aria-label": "Results" });
  const dialog = h(
    "dialog",
    { class: "palette", "aria-label": "Go to", on: { close: () => dialog.remove() } },
    input,
    list,
  );

  const fixed = () => [
    ...PAGES.map(([path, sign, text]) => ({ sign: icon(sign), text, note: "Page", run: () => go(path) })),
    { sign: icon("write"), text: "Write a memory", note: "Action", run: actions.write },
    { sign: icon("moon"), text: "Light or dark", note: "Action", run: actions.theme },
    { sign: icon("help"), text: "Keys", note: "Action", run: actions.keys },
  ];
  const ofProjects = () =>
    projects.map(({ project }) => ({
      sign: icon("projects"),
      text: project,
      note: "Project",
      run: () => go(`/p/${encodeURIComponent(project)}`),
    }));

  function draw(memories = []) {
    const words = input.value.trim().toLowerCase();
    const fits = ({ text }) => text.toLowerCase().includes(words);
    found = [...fixed().filter(fits), ...ofProjects().filter(fits).slice(0, PROJECTS_MAX), ...memories];
    chosen = Math.min(chosen, Math.max(found.length - 1, 0));
    fill(
      list,
      found.map((each, at) =>
        h(
          "li",
          {
            id: `palette-${at}`,
            role: "option",
            "aria-selected": String(at === chosen),
            on: { click: () => run(each) },
          },
          each.sign,
          h("span", { class: "text" }, prose(each.text)),
          h("span", { class: "note" }, each.note),
        ),
      ),
      !found.length && h("li", { class: "hint", role: "option", "aria-selected": "false" }, "Nothing found"),
    );
    showChosen();
  }

  function showChosen() {
    for (const [at, row] of [...list.children].entries()) row.setAttribute("aria-selected", String(at === chosen));
    input.setAttribute("aria-activedescendant", found.length ? `palette-${chosen}` : "");
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
  }

  const search = calm(60, async () => {
    const query = input.value.trim();
    const mine = ++asked;
    if (query.length < 2) return draw();
    const { hits } = await get("/api/search", { query, typing: true, rows: false, limit: MEMORIES_MAX }).catch(
      () => ({ hits: [] }),
    );
    if (mine !== asked) return undefined;
    return draw(
      hits.map(({ id, kind, type, title, project }) => ({
        sign: mark(kind, type),
        text: cut(title || "Untitled", 110),
        note: project,
        run: () => go(address(id)),
      })),
    );
  });

  function run(each) {
    dialog.close();
    each?.run();
  }

  input.addEventListener("input", () => {
    chosen = 0;
    draw();
    search();
  });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && found.length) {
      event.preventDefault();
      chosen = (chosen + step + found.length) % found.length;
      showChosen();
    }
    if (event.key === "Enter") {
      event.preventDefault();
      run(found[chosen]);
    }
  });
  draw();
  document.body.append(dialog);
  dialog.showModal();
}
