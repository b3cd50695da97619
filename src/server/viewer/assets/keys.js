// The keyboard: every page can be used without a mouse.
import { h } from "./dom.js";
import { current, go } from "./router.js";

const PLACES = {
  f: "/",
  s: "/s",
  p: "/p",
  d: "/decisions",
  i: "/files",
  t: "/stats",
  c: "/context",
  r: "/replay",
  e: "/settings",
  l: "/events",
  h: "/log",
};
const HELP = {
  Move: [
    ["/", "Search"],
    ["Ctrl K", "Go to anything"],
    ["j", "Next row"],
    ["k", "Previous row"],
    ["Enter", "Open it"],
    ["Esc", "Back, or close"],
    ["g g", "To the top"],
    ["G", "To the end"],
    ["[", "Earlier memory"],
    ["]", "Later memory"],
    ["?", "These keys"],
  ],
  Act: [
    ["n", "Write a memory"],
    ["v", "Select or deselect"],
    ["y", "Copy as Markdown"],
    ["x", "Forget"],
    ["e", "Edit the memory"],
    ["p", "Pin the memory"],
    ["d", "Light or dark"],
  ],
  "Go to": [
    ["g f", "Feed"],
    ["g s", "Sessions"],
    ["g p", "Projects"],
    ["g d", "Decisions"],
    ["g i", "Files"],
    ["g t", "Stats"],
    ["g c", "Context"],
    ["g r", "Replay"],
    ["g e", "Settings"],
    ["g l", "Events"],
    ["g h", "Health"],
  ],
};

let isGoing = false;

/** Listens for keys. `actions` are those of the frame: `search`, `write`, `theme`, `palette`. */
export function listen(actions) {
  addEventListener("keydown", (event) => {
    if ((event.metaKey || event.ctrlKey) && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return actions.palette();
    }
    if (event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return;
    const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "Escape") return leave(event, isTyping);
    if (isTyping || document.querySelector("dialog[open]")) return;
    const run = found(event.key, actions);
    if (run) {
      event.preventDefault();
      run();
    }
  });
}

function found(key, actions) {
  if (isGoing) {
    isGoing = false;
    if (key === "g") return () => scrollTo(0, 0);
    return PLACES[key] && (() => go(PLACES[key]));
  }
  const own = current().keys?.[key];
  if (own) return own;
  switch (key) {
    case "/":
      return actions.search;
    case "n":
      return actions.write;
    case "d":
      return actions.theme;
    case "?":
      return help;
    case "j":
      return () => step(1);
    case "k":
      return () => step(-1);
    case "G":
      return () => scrollTo(0, document.documentElement.scrollHeight);
    case "g":
      return () => {
        isGoing = true;
        setTimeout(() => (isGoing = false), 1_200);
      };
    default:
      return undefined;
  }
}

function leave(event, isTyping) {
  // An open dialog closes by itself.
  if (document.querySelector("dialog[open]")) return;
  if (isTyping) return isTyping.blur();
  if (current().up) {
    event.preventDefault();
    if (history.state?.isInside) history.back();
    else go(current().up);
  }
}

/** Moves the focus among the rows of the page. */
export function step(by) {
  const rows = [...document.querySelectorAll("#main [data-row]")];
  const at = rows.indexOf(document.activeElement.closest?.("[data-row]"));
  const next =
    rows[
      at < 0 ? (by > 0 ? firstSeen(rows) : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1)
    ];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

/** After scrolling, the first visible row. */
function firstSeen(rows) {
  const at = rows.findIndex((row) => row.getBoundingClientRect().top > 64);
  return Math.max(at, 0);
}

/** Shows all keys. */
export function help() {
  const close = h("button", { class: "button", type: "submit", value: "close", autofocus: true }, "Close");
  const row = ([keys, does]) =>
    h(
      "div",
      null,
      h(
        "dt",
        null,
        keys.split(" ").map((key) => h("kbd", null, key)),
      ),
      h("dd", null, does),
    );
  const columns = Object.entries(HELP).map(([title, rows]) =>
    h("section", null, h("h3", null, title), h("dl", null, rows.map(row))),
  );
  const dialog = h(
    "dialog",
    { class: "keys", "aria-labelledby": "keys-title", on: { close: () => dialog.remove() } },
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "keys-title" }, "Keys"),
      h("div", { class: "columns" }, columns),
      h("p", { class: "actions" }, close),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  // The focus is on the button at its end, which a small screen would scroll to.
  dialog.scrollTo(0, 0);
}
