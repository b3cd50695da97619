// The frame around every page: search, status, theme, and the stream of the worker.
import { enter, follow, get, onKey } from "./api.js";
import { calm, fill, h, prose } from "./dom.js";
import { many, sentence } from "./format.js";
import { icon } from "./icons.js";
import * as keys from "./keys.js";
import { current, go, onRoute, reload, start, tell, withQuery } from "./router.js";
import * as sidebar from "./sidebar.js";
import { complain, copyText } from "./toast.js";

const at = (id) => document.getElementById(id);
const query = at("query");
const state = { isOpen: undefined, isLocked: false, isProcessing: false, queueDepth: 0, parked: 0, problem: null };

/** Typing on any page searches in the feed. Only the first letter adds a step to the history. */
const look = calm(60, () => {
  const words = query.value.trim();
  const isThere = location.pathname === "/";
  const had = isThere && new URLSearchParams(location.search).get("q");
  if (isThere && (had ?? "") === words) return;
  go(withQuery({ q: words }, "/"), Boolean(had) && Boolean(words));
});

query.addEventListener("input", look);
at("search").addEventListener("submit", (event) => {
  event.preventDefault();
  keys.step(1);
});
query.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown") return;
  event.preventDefault();
  keys.step(1);
});

onRoute((path, parameters) => {
  if (document.activeElement !== query) query.value = path === "/" ? (parameters.get("q") ?? "") : "";
  sidebar.place(path, parameters);
  openMenu(false);
});

function openMenu(isOpen) {
  at("menu").setAttribute("aria-expanded", String(isOpen));
  document.body.classList.toggle("menu-open", isOpen);
}
fill(at("menu"), icon("menu"));
at("menu").addEventListener("click", () => openMenu(at("menu").getAttribute("aria-expanded") !== "true"));
addEventListener("keydown", (event) => event.key === "Escape" && openMenu(false));

// Theme: light, dark, or the system's.
const THEMES = { system: "System", light: "Light", dark: "Dark" };
function chosenTheme() {
  return document.documentElement.dataset.theme ?? "system";
}
function showTheme() {
  const theme = chosenTheme();
  fill(at("theme"), icon({ system: "system", light: "sun", dark: "moon" }[theme]));
  at("theme").setAttribute("aria-label", `Colours: ${THEMES[theme]}`);
  at("theme").title = `Colours: ${THEMES[theme]}`;
}
function nextTheme() {
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const order = isDark ? ["system", "light", "dark"] : ["system", "dark", "light"];
  const next = order[(order.indexOf(chosenTheme()) + 1) % order.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("theme", next);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
  showTheme();
}
showTheme();
at("theme").addEventListener("click", nextTheme);

fill(at("write"), icon("write"), h("span", null, "Write"));
at("write").setAttribute("aria-label", "Write a memory");
const write = () => import("./write.js").then(({ open }) => open()).catch(complain);
at("write").addEventListener("click", write);
fill(at("help"), icon("help"));
at("help").addEventListener("click", keys.help);
const palette = () => import("./palette.js").then(({ open }) => open({ write, theme: nextTheme, keys: keys.help }), complain);
keys.listen({ write, palette, theme: nextTheme, search: () => query.select() });

function showState() {
  const [kind, text] = connection();
  document.body.classList.toggle("is-locked", state.isLocked);
  fill(at("live"), h("span", { class: `dot ${kind}` }), h("span", { class: "word" }, text));
  showProblem();
}

const NOT_RUNNING = {
  message: "the worker is not running",
  meaning: "this page shows what was loaded before",
  remedy: "start it with `claude-mem viewer`",
};

/** Shows why nothing is distilled, and the command that helps. Rendered once for each reason. */
function showProblem() {
  const seen = state.isOpen === false ? NOT_RUNNING : state.problem;
  const problem = state.isLocked ? null : seen;
  const text = problem ? [problem.message, problem.meaning, problem.remedy].join("\n") : "";
  if (at("banner").dataset.text === text) return;
  at("banner").dataset.text = text;
  at("banner").hidden = !problem;
  if (!problem) return fill(at("banner"));
  const command = /`(claude-mem [^`]+)`/.exec(problem.remedy)?.[1];
  const copy = () => copyText(command, "Command copied");
  return fill(
    at("banner"),
    icon("alert"),
    h(
      "div",
      null,
      h("p", null, h("b", null, sentence(problem.message)), " ", sentence(problem.meaning)),
      h("p", null, prose(sentence(problem.remedy))),
    ),
    command && h("button", { type: "button", class: "button", title: command, on: { click: copy } }, icon("copy"), "Copy"),
  );
}

function connection() {
  if (state.isOpen === undefined) return ["waiting", "Connecting"];
  if (state.isLocked) return ["off", "Locked"];
  if (!state.isOpen) return ["alert", "Worker is not running"];
  if (state.problem && !state.parked) return ["alert", "Provider fails"];
  if (state.parked) return ["alert", many(state.parked, "request parked", "requests parked")];
  if (state.isProcessing) return ["busy", "Distilling"];
  if (state.queueDepth) return ["busy", `${state.queueDepth} pending`];
  return ["on", "Live"];
}

const refreshProjects = calm(400, () => sidebar.refresh().catch(() => {}));

function changed(change) {
  if (change.type === "processing_status") Object.assign(state, change);
  if (change.type === "observation_queued") state.queueDepth += 1;
  if (["new_observation", "new_summary", "session_started", "forgotten", "reload"].includes(change.type))
    refreshProjects();
  showState();
  if (change.type === "reload") reload();
  else tell(change);
}

let wasAway = false;
function opened(isOpen) {
  state.isOpen = isOpen;
  showState();
  if (isOpen && !wasAway) return;
  wasAway = !isOpen;
  const wasLocked = state.isLocked;
  // A new worker may be running, which does not know this browser.
  ask().then(() => {
    if (!state.isLocked) return isOpen && current().returned?.();
    return wasLocked || reload();
  });
}

/** Requests the health, which also shows whether this browser has a valid key. */
async function ask() {
  try {
    Object.assign(state, await get("/api/processing"), { isLocked: false });
  } catch (error) {
    state.isLocked = error.isLocked;
  }
  showState();
}

/**
 * Opens the event stream, unless this browser has no key: then the page shows it itself. Returns when the stream is
 * open or has failed. Every later change is received, so a page that is loaded now misses nothing.
 */
async function listen() {
  await ask();
  if (state.isLocked) state.isOpen = false;
  else await follow(changed, opened);
  showState();
}

// Another tab got a new key: this tab uses it and stays on its page.
onKey(async () => {
  if (!state.isLocked) return;
  await ask();
  if (state.isOpen === false && !wasAway) await listen();
  sidebar.refresh().catch(() => {});
  reload();
});

showState();
if (location.pathname === "/open") {
  const place = await enter();
  if (place) history.replaceState(null, "", place);
}
sidebar.refresh().catch(() => {});
await listen();
start();
// Loaded when the browser is idle, so that a key press opens them at once.
(globalThis.requestIdleCallback ?? setTimeout)(() => Promise.all([import("./palette.js"), import("./write.js")]).catch(() => {}));
