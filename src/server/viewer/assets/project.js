// Overview of a project: open work, decisions, rules, files and cost. Without a name: all projects.
import { get } from "./api.js";
import { calm, fill, h, prose, time } from "./dom.js";
import { ago, brief, cut, inFull, many, money, openEnd, tail } from "./format.js";
import { icon, mark } from "./icons.js";
import { empty } from "./router.js";
import { address, isSame, item, label } from "./rows.js";
import { card } from "./sessions.js";
import { projects, refresh } from "./sidebar.js";

const DAYS = 30;
const FEW = 8;

export default async function project(main, { wanted }) {
  await refresh().catch(() => {});
  return wanted ? one(main, decodeURIComponent(wanted)) : all(main);
}

async function one(main, name) {
  const body = h("div");
  main.append(body);
  async function draw() {
    const about = { project: name };
    const [sessions, decisions, rules, files, period, summaries] = await Promise.all([
      get("/api/sessions", { ...about, limit: 30 }),
      get("/api/observations", { ...about, type: "decision", limit: FEW }),
      get("/api/observations", { ...about, type: "rule,note", limit: FEW }),
      get("/api/files", { ...about, limit: FEW }),
      get("/api/stats/daily", { ...about, days: DAYS }),
      get("/api/summaries", { ...about, limit: 60 }),
    ]);
    const known = projects.find(({ project: other }) => other === name);
    fill(
      body,
      head(name, known),
      known || sessions.items.length
        ? [
            figures(known, period),
            last(sessions.items),
            open(summaries.items),
            h(
              "div",
              { class: "halves" },
              list("Decisions", decisions.items, `/decisions?project=${encodeURIComponent(name)}`, decisions.hasMore),
              list("Rules and notes", rules.items, `/?project=${encodeURIComponent(name)}&type=rule`, rules.hasMore),
            ),
            hot(files.items, name),
          ]
        : empty("No such project", "Nothing is recorded of a project with this name."),
    );
  }
  await draw();
  const renew = calm(1_000, () => draw().catch(() => {}));
  return { title: name, changed: (change) => /^(new_|forgotten|session_)/.test(change.type) && renew(), up: "/p" };
}

function head(name, known) {
  const to = (path, sign, text) =>
    h("a", { class: "button", href: `${path}?project=${encodeURIComponent(name)}` }, icon(sign), text);
  return h(
    "header",
    { class: "head" },
    h("p", { class: "crumbs" }, h("a", { href: "/p" }, "Projects"), icon("next"), name),
    h("h1", null, name),
    known?.root && h("p", { class: "meta" }, h("code", null, known.root)),
    h(
      "p",
      { class: "actions" },
      to("/", "feed", "Feed"),
      to("/s", "sessions", "Sessions"),
      to("/stats", "stats", "Stats"),
      to("/context", "context", "Context"),
    ),
  );
}

function figures(known, period) {
  const sum = (key) => period.days.reduce((total, day) => total + day[key], 0);
  const figure = (name, value, note) =>
    h("div", null, h("dt", null, name), h("dd", null, value, note && h("small", null, note)));
  return h(
    "dl",
    { class: "figures" },
    figure("Observations", brief(known?.observations ?? 0), `${brief(sum("observations"))} in ${DAYS} days`),
    figure("Sessions", brief(known?.sessions ?? 0), `${brief(period.sessions)} in ${DAYS} days`),
    figure("Tool uses", brief(sum("tool_uses")), `in ${DAYS} days`),
    figure("Spent", money(known?.cost_usd), `${money(sum("cost_usd"))} in ${DAYS} days`),
  );
}

function last([session]) {
  return session && h("section", null, h("h2", { class: "rule" }, "Last session"), h("ol", { class: "cards" }, card(session, session.project)));
}

/** The next steps in the last summary of each session. */
function open(summaries) {
  const seen = new Set();
  const left = summaries.filter(({ content_session_id: session, next_steps: steps }) => {
    const isFirst = !seen.has(session);
    seen.add(session);
    return isFirst && openEnd(steps);
  });
  return (
    left.length > 0 &&
    h(
      "section",
      null,
      h("h2", { class: "rule" }, "Open ends"),
      h(
        "ul",
        { class: "ends" },
        left.slice(0, FEW).map((summary) =>
          h(
            "li",
            null,
            h("a", { href: address(`S${summary.id}`), data: { row: `S${summary.id}` } }, prose(cut(openEnd(summary.next_steps), 300))),
            h("p", { class: "meta" }, h("span", null, "after ", prose(cut(summary.request ?? "a session", 90))), time(summary.created_at_epoch, ago(summary.created_at_epoch), inFull(summary.created_at_epoch))),
          ),
        ),
      ),
    )
  );
}

function list(title, rows, more, hasMore) {
  return h(
    "section",
    null,
    h("h2", { class: "rule" }, title),
    rows.length
      ? h(
          "ul",
          { class: "brief-list" },
          rows.map((row) => item(row, "observation")).map((memory) =>
            h(
              "li",
              null,
              mark("observation", memory.type),
              h(
                "div",
                null,
                h("span", { class: "hidden" }, `${label("observation", memory.type)}: `),
                h("a", { class: "strong", href: address(memory.name), data: { row: memory.name } }, prose(cut(memory.headline || "Untitled", 140))),
                memory.text && !isSame(memory.text, memory.headline) && h("p", { class: "text" }, prose(cut(memory.text, 160))),
              ),
            ),
          ),
        )
      : h("p", { class: "hint" }, "None yet."),
    hasMore && h("p", { class: "hint" }, h("a", { class: "more-link", href: more }, "All of them")),
  );
}

function hot(files, name) {
  return (
    files.length > 0 &&
    h(
      "section",
      null,
      h("h2", { class: "rule" }, "Files with most memories"),
      h("ul", { class: "file-list" }, files.map((file) => fileRow(file, name))),
      h("p", { class: "hint" }, h("a", { class: "more-link", href: `/files?project=${encodeURIComponent(name)}` }, "All files")),
    )
  );
}

/** A file in a list. */
export function fileRow({ file, project: of, observations, changes, last_at_epoch: at }, name) {
  return h(
    "li",
    null,
    icon("file"),
    h(
      "a",
      { href: `/?file=${encodeURIComponent(file)}&project=${encodeURIComponent(of)}`, title: file, data: { row: file } },
      h("code", null, tail(file, 3)),
    ),
    name !== of && h("span", { class: "of" }, of),
    h("span", { class: "number" }, many(observations, "memory", "memories")),
    h("span", { class: "number" }, changes ? `changed ${many(changes, "time")}` : "read"),
    h("span", { class: "number" }, time(at, ago(at), inFull(at))),
  );
}

/** Every project. */
async function all(main) {
  main.append(h("header", { class: "head" }, h("h1", null, "Projects")));
  const row = ({ project: name, root, sessions, observations, cost_usd: cost, last_at_epoch: at }) =>
    h(
      "li",
      { class: "card" },
      h("a", { class: "headline", href: `/p/${encodeURIComponent(name)}`, data: { row: name } }, name),
      h(
        "p",
        { class: "meta" },
        at && time(at, ago(at), inFull(at)),
        h("span", null, many(sessions, "session")),
        h("span", null, many(observations, "observation")),
        h("span", null, money(cost)),
        root && h("code", null, root),
      ),
    );
  main.append(
    projects.length
      ? h("ol", { class: "cards" }, projects.map(row))
      : empty("No projects yet", "A project appears here with its first prompt."),
  );
  return { title: "Projects", up: "/" };
}
