// The sidebar: pages and projects.
import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { brief } from "./format.js";
import { icon } from "./icons.js";
import { withQuery } from "./router.js";

const PAGES = [
  ["/", "feed", "Feed"],
  ["/s", "sessions", "Sessions"],
  ["/stats", "stats", "Stats"],
  ["/context", "context", "Context"],
  ["/replay", "replay", "Replay"],
  ["/settings", "settings", "Settings"],
  ["/log", "log", "Log"],
];
const SHOWN = 12;

/** The projects by name, the most recently used first. */
export let projects = [];

let path = "/";
let query = new URLSearchParams();
let isWhole = false;

/** Draws the column for this address. */
export function place(newPath, newQuery) {
  [path, query] = [newPath, newQuery];
  draw();
}

/** Asks for the projects again. */
export async function refresh() {
  const { details } = await get("/api/projects");
  projects = details.toSorted((a, b) => (b.last_at ?? "").localeCompare(a.last_at ?? ""));
  draw();
}

function draw() {
  const chosen = query.get("project");
  const isPage = (page) =>
    page === "/" ? path === "/" || path.startsWith("/m/") : path === page || path.startsWith(`${page}/`);
  const pages = PAGES.map(([page, sign, label]) =>
    h(
      "li",
      null,
      h(
        "a",
        { href: page, "aria-current": isPage(page) ? "page" : undefined },
        icon(sign),
        h("span", null, label),
      ),
    ),
  );
  const filtered = ["/", "/s", "/stats", "/context"].includes(path) ? path : "/";
  const address = (project) =>
    filtered === path
      ? withQuery({ project, session: "" }, path)
      : `/${project ? `?project=${encodeURIComponent(project)}` : ""}`;
  const row = ({ project, observations }) =>
    h(
      "li",
      null,
      h(
        "a",
        {
          href: address(chosen === project ? "" : project),
          "aria-current": chosen === project ? "true" : undefined,
          title: project,
        },
        h("span", { class: "name" }, project),
        h("span", { class: "number" }, brief(observations)),
      ),
    );
  const few = isWhole ? projects : projects.slice(0, SHOWN);
  const more =
    projects.length > SHOWN &&
    h(
      "button",
      { type: "button", class: "link", on: { click: toggle } },
      isWhole ? "Fewer" : `${projects.length - SHOWN} more`,
    );
  fill(
    document.getElementById("side"),
    h("ul", { class: "pages" }, pages),
    projects.length > 0 &&
      h(
        "section",
        { "aria-labelledby": "projects-title" },
        h("h2", { id: "projects-title" }, "Projects", chosen && h("a", { href: address("") }, "Clear")),
        h("ul", { class: "projects" }, few.map(row)),
        more,
      ),
  );
}

function toggle() {
  isWhole = !isWhole;
  draw();
}
