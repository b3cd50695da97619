// The content of an event as the user saw it: an edit as a diff, a command as a terminal, a file as its text.
import { h } from "./dom.js";
import { tail } from "./format.js";

/** Lines of a diff beyond this are cut: a browser draws each as an element. */
const LINES_MAX = 400;

/** One line about an event: the tool and its command or file, or the kind of event and its first words. */
export function subject({ tool, kind, subject: text, has_failed: hasFailed }) {
  return [
    h("span", { class: "strong" }, tool || kindName(kind)),
    h(tool ? "code" : "span", { class: "subject", title: tool ? text : undefined }, tool ? short(text) : text),
    hasFailed && h("span", { class: "badge failed" }, "failed"),
  ];
}

/** The end of a path distinguishes files; other texts are cut by the layout. */
const short = (text) => (/^\/\S+$/.test(text) ? tail(text, 3) : text);

const KINDS = {
  PromptSubmitted: "Prompt",
  ToolUsed: "Tool use",
  SummaryRequested: "End of turn",
  AgentReplied: "Response",
  AgentFailed: "Failed request",
  MemoryAdded: "Note",
  MemoryRevised: "Revision",
  MemoryInjected: "Context given",
  InputUnreadable: "Unreadable input",
};

/** The label of a kind of event: `SessionStarted` is `Session started`. */
export const kindName = (kind) =>
  KINDS[kind] ?? kind.replace(/(?<!^)([A-Z])/g, (letter) => ` ${letter.toLowerCase()}`);

/** The content of an event. */
export function evidence({ kind, tool, input, output, is_clipped: isClipped }) {
  const given = parsed(input);
  const is = (value) => typeof value === "string";
  const shown = () => {
    if (kind !== "ToolUsed") return [text(undefined, input), text(input && "Response", output)];
    if (is(given?.old_string) && is(given?.new_string))
      return diff(given.file_path, [[given.old_string, given.new_string]]);
    if (Array.isArray(given?.edits) && given.edits.every((edit) => is(edit?.old_string) && is(edit?.new_string)))
      return diff(given.file_path, given.edits.map((edit) => [edit.old_string, edit.new_string]));
    if (is(given?.content) && is(given?.file_path)) return diff(given.file_path, [["", given.content]]);
    if (is(given?.command)) return terminal(given.command, given.description, output);
    if (is(given?.file_path ?? given?.notebook_path)) return file(given, output);
    return [text(tool === undefined ? "Text" : "Input", pretty(given ?? input)), text("Output", pretty(parsed(output) ?? output))];
  };
  return [
    shown(),
    isClipped && h("p", { class: "hint" }, "Shortened. All of it: ", h("code", null, "claude-mem log --raw")),
  ];
}

/** The removed and the added lines, with the unchanged lines between them. */
function diff(path, pairs) {
  const lines = pairs.flatMap(([before, after], at) => [
    ...(at ? [["gap", "⋯"]] : []),
    ...compared(before ? before.split("\n") : [], after ? after.split("\n") : []),
  ]);
  const signs = { old: "−", new: "+", same: " ", gap: " " };
  return [
    path && h("p", { class: "label" }, h("code", null, path)),
    h(
      "pre",
      { class: "diff", tabindex: 0, "aria-label": `Changes of ${path ?? "a file"}` },
      lines.slice(0, LINES_MAX).map(([style, line]) => h("span", { class: style }, `${signs[style]} ${line}\n`)),
      lines.length > LINES_MAX && h("span", { class: "gap" }, `⋯ ${lines.length - LINES_MAX} more lines\n`),
    ),
  ];
}

/** Keeps equal lines at both ends. The lines between them were replaced. */
function compared(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const all = (lines, style) => lines.map((line) => [style, line]);
  return [
    ...all(after.slice(0, start), "same"),
    ...all(before.slice(start, before.length - end), "old"),
    ...all(after.slice(start, after.length - end), "new"),
    ...all(after.slice(after.length - end), "same"),
  ];
}

function terminal(command, about, output) {
  const { stdout, stderr } = parsed(output) ?? {};
  const printed = stdout === undefined && stderr === undefined ? plain(output) : [stdout, stderr].filter(Boolean).join("\n");
  return h(
    "pre",
    { class: "terminal", tabindex: 0, "aria-label": about || "Command and its output" },
    h("span", { class: "command-line" }, `$ ${command}\n`),
    printed,
  );
}

function file({ file_path: path, notebook_path: notebook, offset, limit }, output) {
  const place = offset ? `${path ?? notebook}:${offset}${limit ? `–${offset + limit - 1}` : ""}` : (path ?? notebook);
  const found = parsed(output);
  const content = found?.file?.content ?? found?.content ?? found;
  return [h("p", { class: "label" }, h("code", null, place)), text(undefined, typeof content === "string" ? content : plain(output))];
}

function text(label, content) {
  return content && [label && h("p", { class: "label" }, label), h("pre", { tabindex: 0 }, content)];
}

function parsed(content) {
  if (typeof content !== "string") return content ?? undefined;
  try {
    return JSON.parse(content);
  } catch {
    return undefined;
  }
}

const pretty = (value) => (typeof value === "string" || value === undefined ? value : JSON.stringify(value, null, 2));

/** Shows a JSON string as plain text. */
function plain(output) {
  const value = parsed(output) ?? output;
  return typeof value === "string" ? value : pretty(value);
}
