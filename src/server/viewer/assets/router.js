// Addresses and pages. A page is a module that is loaded on first use:
//
//   export default async function page(main, route) → { title, changed?, update?, keys?, leave? }
//
// `changed` receives changes from the worker, `update` a new query of the same page, `keys` are its shortcuts.
import { unreachable } from "./api.js";
import { fill, h, prose } from "./dom.js";
import { icon } from "./icons.js";
import { copyText } from "./toast.js";

const PAGES = [
  [/^\/$/, () => import("./feed.js")],
  [/^\/(?:s|sessions)$/, () => import("./sessions.js")],
  [/^\/s\/(.+)$/, () => import("./story.js")],
  [/^\/m\/([SP]?\d+)$/, () => import("./detail.js")],
  [/^\/(?:p|projects)$/, () => import("./project.js")],
  [/^\/p\/(.+)$/, () => import("./project.js")],
  [/^\/decisions$/, () => import("./decisions.js")],
  [/^\/files$/, () => import("./files.js")],
  [/^\/stats$/, () => import("./stats.js")],
  [/^\/context$/, () => import("./context.js")],
  [/^\/replay$/, () => import("./replay.js")],
  [/^\/replay\/(\d+)$/, () => import("./diff.js")],
  [/^\/settings$/, () => import("./settings.js")],
  [/^\/log$/, () => import("./log.js")],
  [/^\/events$/, () => import("./events.js")],
  [/^\/open$/, async () => ({ default: used })],
];

let shown = { page: {}, path: undefined };
let turn = 0;
/** Changes that arrived while a page was being built, which it may have missed. */
let meanwhile;
const listeners = [];

/** The page that is shown now. */
export const current = () => shown.page;

/** Passes a change to the page; a page that is still loading gets it afterwards. */
export function tell(change) {
  if (meanwhile) meanwhile.push(change);
  else shown.page.changed?.(change);
}

/** Calls back after each change of address. */
export const onRoute = (run) => listeners.push(run);

/** Opens an address of the viewer. `replace` adds no step to the history. */
export function go(url, replace = false) {
  if (replace) history.replaceState(history.state, "", url);
  else {
    const row = document.activeElement?.closest?.("[data-row]")?.dataset.row;
    history.replaceState({ ...history.state, scroll: scrollY, row }, "");
    history.pushState({ isInside: true }, "", url);
  }
  return draw();
}

/** The address with some parameters changed; empty ones are left out. */
export function withQuery(changes, path = location.pathname) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return path + (text ? `?${text}` : "");
}

/** Handles clicks on links of the viewer, and the back button. */
export function start() {
  history.scrollRestoration = "manual";
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='/']");
    if (
      !link ||
      link.download ||
      event.button ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    event.preventDefault();
    go(link.getAttribute("href"));
  });
  addEventListener("popstate", () => draw(history.state?.scroll ?? 0));
  addEventListener("pagehide", () => history.replaceState({ ...history.state, scroll: scrollY }, ""));
  return draw(history.state?.scroll ?? 0);
}

/** Renders the page again from the start. */
export function reload() {
  shown.path = undefined;
  return draw(scrollY);
}

async function draw(scroll = 0) {
  const mine = ++turn;
  const query = new URLSearchParams(location.search);
  const path = decodeURI(location.pathname);
  for (const run of listeners) run(path, query);
  if (shown.path === path && shown.page.update) return shown.page.update(query);
  const main = document.getElementById("main");
  const [load, wanted] = find(path);
  try {
    const { default: page } = await load().catch(unreachable);
    if (mine !== turn) return;
    shown.page.leave?.();
    shown = { page: {}, path: undefined };
    main.setAttribute("aria-busy", "true");
    const received = (meanwhile = []);
    const place = h("div", { class: "page" });
    const slow = setTimeout(() => mine === turn && fill(main, waiting()), 150);
    const made = await page(place, { path, query, wanted }).finally(() => clearTimeout(slow));
    if (mine !== turn) return made.leave?.();
    shown = { page: made, path };
    meanwhile = undefined;
    fill(main, place);
    for (const change of received) made.changed?.(change);
    document.title = made.title ? `${made.title} · claude-mem` : "claude-mem";
    scrollTo(0, scroll);
    settle(main);
  } catch (error) {
    if (mine !== turn || error.name === "AbortError") return;
    shown = { page: error.isGone ? { returned: reload } : {}, path: undefined };
    fill(main, trouble(error));
    document.title = "claude-mem";
  } finally {
    if (mine === turn) {
      meanwhile = undefined;
      main.removeAttribute("aria-busy");
    }
  }
}

/** Focuses the row that had the focus before, else the page. */
function settle(main) {
  const left = history.state?.row && main.querySelector(`[data-row="${CSS.escape(history.state.row)}"]`);
  if (left) left.focus({ preventScroll: true });
  else if (turn > 1 && !document.activeElement?.closest?.("header.top")) main.focus({ preventScroll: true });
}

function find(path) {
  for (const [pattern, load] of PAGES) {
    const match = pattern.exec(path);
    if (match) return [load, match[1]];
  }
  return [async () => ({ default: nowhere })];
}

async function nowhere(main) {
  main.append(
    h("h1", { class: "hidden" }, "Not found"),
    empty(
      "Page not found",
      "The address may have been mistyped.",
      h("a", { class: "button", href: "/" }, "Go to the feed"),
    ),
  );
  return { title: "Not found" };
}

/** Shown for a link that was used before, or is too old. */
async function used(main) {
  main.append(locked("This link has expired", "A link works once, within a minute. Create a new one:", "/"));
  return { title: "Locked" };
}

/** Grey lines as placeholders while text is loading. */
export function waiting() {
  const line = (width) => h("span", { class: `skeleton w${width}` });
  return h(
    "div",
    { class: "page waiting", role: "status", "aria-label": "Loading" },
    [60, 90, 75, 85, 40, 90, 70].map(line),
  );
}

/** Shows that there is nothing, and what to do about it. */
export function empty(title, text, ...more) {
  return h("div", { class: "empty" }, h("h2", null, title), h("p", null, text), more);
}

/** The argument of `claude-mem viewer` that opens this address. */
function viewerArgument(path) {
  const memory = /^\/m\/([SP]?\d+)$/.exec(path);
  const page = /^\/(stats|files|decisions|context|replay|settings|events)$/.exec(path);
  if (path === "/") return "";
  return ` ${memory?.[1] ?? page?.[1] ?? `'${path.replaceAll("'", "%27")}'`}`;
}

/** Shows that this browser has no access, and how to get it. Continues by itself when another tab has access. */
function locked(title, text, path) {
  const command = `claude-mem viewer${viewerArgument(path)}`;
  const copy = () => copyText(command, "Command copied");
  return h(
    "div",
    { class: "empty locked" },
    icon("alert"),
    h("h1", null, title),
    h("p", null, text),
    h("pre", { class: "command" }, command),
    h(
      "p",
      { class: "actions" },
      h("button", { type: "button", class: "button", on: { click: copy } }, icon("copy"), "Copy the command"),
    ),
    h("p", { class: "hint" }, "This tab continues by itself as soon as the viewer is open in another one."),
  );
}

/** Shows an error, and what to do about it. */
export function trouble(error) {
  if (error.isLocked) {
    return locked(
      "This page is locked",
      "This browser has no access, or was not used for 30 days. Open the viewer from a terminal:",
      location.pathname + location.search,
    );
  }
  const message = error.message || "Something went wrong";
  const again =
    error.status === 404
      ? h("a", { class: "button", href: "/" }, "Go to the feed")
      : h("button", { class: "button", type: "button", on: { click: reload } }, "Try again");
  return h(
    "div",
    { class: "empty", role: "alert" },
    icon("alert"),
    h("h1", null, message[0].toUpperCase() + message.slice(1)),
    error.meaning && h("p", null, error.meaning),
    error.remedy && h("p", null, prose(error.remedy)),
    again,
  );
}
