// The sidebar: pages and projects.
import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { brief } from "./format.js";
import { icon } from "./icons.js";
import { withQuery } from "./router.js";

/** Address, icon, name, and whether the page can be limited to one project. */
export const PAGES = [
  ["/", "feed", "Feed", true],
  ["/s", "sessions", "Sessions", true],
  ["/p", "projects", "Projects"],
  ["/decisions", "decisions", "Decisions", true],
  ["/files", "file", "Files", true],
  ["/stats", "stats", "Stats", true],
  ["/context", "context", "Context", true],
  ["/replay", "replay", "Replay"],
  ["/settings", "settings", "Settings"],
  ["/events", "events", "Events", true],
  ["/log", "log", "Health"],
];
const SHOWN = 12;
const only = (project) => `?project=${encodeURIComponent(project)}`;

/** The projects by name, the most recently used first. */
export let projects = [];

let path = "/";
let query = new URLSearchParams();
let isWhole = false;

/** Renders the sidebar for this address. */
export function place(newPath, newQuery) {
  [path, query] = [newPath, newQuery];
  draw();
}

/** Requests the projects again. */
export async function refresh() {
  const { details, sources } = await get("/api/projects");
  document.body.classList.toggle("has-clients", sources.length > 1);
  projects = details.toSorted((a, b) => (b.last_at ?? "").localeCompare(a.last_at ?? ""));
  draw();
}

function draw() {
  const chosen = query.get("project") ?? /^\/p\/(.+)$/.exec(path)?.slice(1).map(decodeURIComponent)[0];
  const isPage = (page) =>
    page === "/" ? path === "/" || path.startsWith("/m/") : path === page || path.startsWith(`${page}/`);
  const pages = PAGES.map(([page, sign, label, isFiltered]) =>
    h(
      "li",
      null,
      h(
        "a",
        { href: page + (chosen && isFiltered ? only(chosen) : ""), "aria-current": isPage(page) ? "page" : undefined },
        icon(sign),
        h("span", null, label),
      ),
    ),
  );
  const isFiltered = PAGES.some(([page, , , isOfOne]) => isOfOne && page === path);
  const address = (project) => {
    if (isFiltered) return withQuery({ project, session: "" }, path);
    if (path.startsWith("/p/") && project) return `/p/${encodeURIComponent(project)}`;
    return project ? `/${only(project)}` : "/";
  };
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
      chosen === project &&
        !path.startsWith("/p/") &&
        h("a", { class: "overview", href: `/p/${encodeURIComponent(project)}` }, "Overview"),
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
