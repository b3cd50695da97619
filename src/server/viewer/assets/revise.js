// Corrects an observation: edit, pin, mark as wrong.
import { get, post } from "./api.js";
import { fill, h, prose } from "./dom.js";
import { reload } from "./router.js";
import { complain, toast } from "./toast.js";

const change = (memory, body) => post(`/api/observation/${memory.id}/revisions`, body);

/** Changes it at once, with an undo button. */
async function now(memory, body, notice, undo) {
  try {
    await change(memory, body);
    reload();
    toast(notice, undo && { label: "Undo", run: () => undo(memory) });
  } catch (error) {
    complain(error);
  }
}

export const pin = (memory) => now(memory, { action: "pin" }, "Pinned: it comes first", unpin);
export const unpin = (memory) => now(memory, { action: "unpin" }, "Unpinned", pin);
export const restore = (memory) => now(memory, { action: "restore" }, "Sessions get it again");

/** Asks why it is wrong. */
export function wrong(memory) {
  const because = h("input", { name: "because", maxlength: 500, autofocus: true, placeholder: "Optional" });
  const hint = "It is still found, with a mark, and given to no session.";
  dialog("Mark as wrong", hint, [field("Why is it wrong?", because)], "Mark as wrong", async () => {
    await change(memory, { action: "wrong", because: because.value });
    toast("Marked as wrong", { label: "Undo", run: () => restore(memory) });
  });
}

/** Shows its text in a form. The text replaces subtitle, narrative and facts. */
export async function edit(memory) {
  const known = await get("/api/types").catch(() => ({ types: [] }));
  const facts = memory.facts.map((fact) => `- ${fact}`).join("\n");
  const before = [memory.subtitle, memory.narrative, facts].filter(Boolean).join("\n\n");
  const title = h("input", { name: "title", maxlength: 300, value: memory.title ?? "" });
  const text = h("textarea", { name: "text", rows: 9, maxlength: 20_000, autofocus: true });
  text.value = before;
  const types = [...new Set([memory.type, ...known.types.map(({ id }) => id)])].filter(Boolean);
  const type = h(
    "select",
    { name: "type" },
    types.map((id) => h("option", { value: id, selected: id === memory.type }, id.replaceAll("_", " "))),
  );
  const fields = [field("Title", title), field("Text", text), field("Type", type)];
  const hint = "New sessions get the new text. Do not enter secrets.";
  dialog("Edit", hint, fields, "Save", async () => {
    const changed = (value, old) => (value.trim() && value !== (old ?? "") ? value : undefined);
    const { is_redacted: isRedacted } = await change(memory, {
      action: "edit",
      title: changed(title.value, memory.title),
      text: changed(text.value, before),
      type: changed(type.value, memory.type),
    });
    toast(isRedacted ? "Saved, without text that looked secret" : "Saved");
  });
  text.setSelectionRange(0, 0);
  text.scrollTop = 0;
}

const field = (label, input) => h("label", { class: "field" }, h("span", null, label), input);

/** A form in a dialog. It shows the error that `save` throws. */
function dialog(heading, hint, fields, button, save) {
  const problem = h("p", { class: "wrong", role: "alert" });
  const keep = h("button", { class: "button primary", type: "submit" }, button);
  const cancel = h("button", { class: "button", type: "button", on: { click: () => box.close() } }, "Cancel");
  const submit = async (event) => {
    event.preventDefault();
    keep.disabled = true;
    try {
      await save();
      box.close();
      reload();
    } catch (error) {
      fill(problem, prose([error.message, error.remedy].filter(Boolean).join(". ")));
      keep.disabled = false;
    }
  };
  const form = h(
    "form",
    { on: { submit } },
    h("h2", { id: "revise-title" }, heading),
    h("p", { class: "hint" }, hint),
    fields,
    problem,
    h("p", { class: "actions" }, cancel, keep),
  );
  const box = h(
    "dialog",
    { class: "write", "aria-labelledby": "revise-title", on: { close: () => box.remove() } },
    form,
  );
  document.body.append(box);
  box.showModal();
}
