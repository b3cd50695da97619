// The dialog for writing a memory.
import { get, post } from "./api.js";
import { fill, h, prose } from "./dom.js";
import { go } from "./router.js";
import { address } from "./rows.js";
import { projects } from "./sidebar.js";
import { toast } from "./toast.js";

/** Text that was not saved yet: closing the dialog by mistake loses nothing. */
const DRAFT = "claude-mem-draft";

/** Opens the dialog. The default project is the one on the page. */
export async function open() {
  const known = await get("/api/types").catch(() => ({ types: [] }));
  const here = new URLSearchParams(location.search).get("project") ?? projects[0]?.project ?? "";
  const wrong = h("p", { class: "wrong", role: "alert" });
  const text = h("textarea", {
    name: "text",
    rows: 5,
    required: true,
    autofocus: true,
    maxlength: 20_000,
    placeholder: "We deploy on Tuesdays, because the invoices run on Mondays.",
  });
  const title = h("input", {
    name: "title",
    maxlength: 200,
    placeholder: "Optional [default: the first line]",
  });
  const project = h(
    "select",
    { name: "project" },
    projects.map((each) => h("option", { selected: each.project === here }, each.project)),
  );
  text.value = sessionStorage.getItem(DRAFT) ?? "";
  text.addEventListener("input", () => sessionStorage.setItem(DRAFT, text.value));
  // The same default as `claude-mem remember`.
  const types = ["note", ...known.types.map(({ id }) => id).filter((id) => id !== "note")];
  const type = h(
    "select",
    { name: "type" },
    types.map((id) => h("option", { value: id, selected: id === "note" }, id.replaceAll("_", " "))),
  );
  const field = (label, input) => h("label", { class: "field" }, h("span", null, label), input);
  const keep = h("button", { class: "button primary", type: "submit" }, "Remember");
  const cancel = h(
    "button",
    { class: "button", type: "button", on: { click: () => dialog.close() } },
    "Cancel",
  );
  const shortcut = h("span", { class: "hint wide" }, h("kbd", null, "Ctrl"), " ", h("kbd", null, "Enter"));
  const form = h(
    "form",
    { on: { submit: save } },
    h("h2", { id: "write-title" }, "Write a memory"),
    h(
      "p",
      { class: "hint" },
      "It is saved without calling a model, and comes first in the context of new sessions. Do not enter secrets.",
    ),
    field("What to remember", text),
    field("Title", title),
    h(
      "div",
      { class: "two" },
      projects.length > 0 && field("Project", project),
      field("Type", type),
    ),
    wrong,
    h("p", { class: "actions" }, shortcut, cancel, keep),
  );
  const dialog = h(
    "dialog",
    { class: "write", "aria-labelledby": "write-title", on: { close: () => dialog.remove() } },
    form,
  );
  text.addEventListener(
    "keydown",
    (event) => event.key === "Enter" && (event.metaKey || event.ctrlKey) && form.requestSubmit(),
  );
  document.body.append(dialog);
  dialog.showModal();

  async function save(event) {
    event.preventDefault();
    keep.disabled = true;
    const body = {
      text: text.value,
      title: title.value || undefined,
      project: project.value || undefined,
      type: type.value || undefined,
    };
    try {
      const { id, is_redacted: isRedacted } = await post("/api/memory/save", body);
      sessionStorage.removeItem(DRAFT);
      dialog.close();
      toast(
        isRedacted ? "Saved, without text that looked secret" : "Remembered",
        id && { label: "Show it", run: () => go(address(id)) },
      );
    } catch (error) {
      fill(wrong, prose([error.message, error.remedy].filter(Boolean).join(". ")));
      keep.disabled = false;
    }
  }
}
