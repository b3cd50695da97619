// The log: every event of this machine, live.
import { get } from "./api.js";
import { calm, fill, h, time } from "./dom.js";
import { evidence, kindName, subject } from "./evidence.js";
import { dayOf, hour, inFull } from "./format.js";
import { empty, go, withQuery } from "./router.js";
import { dayHeading, story } from "./rows.js";
import { projects } from "./sidebar.js";

const PAGE = 60;
/** Polls for events that no hook announces, such as failed requests. */
const LOOK_MS = 3_000;

export default async function events(main, { query }) {
  const wanted = Object.fromEntries(["kind", "project", "session"].map((name) => [name, query.get(name) ?? ""]));
  const list = h("div", { class: "events" });
  const end = h("div", { class: "end" });
  const bar = h("div", { class: "filters", role: "group", "aria-label": "Filters" });
  const known = new Set();
  let newest;
  let oldest;
  let hasMore = true;
  let isAsking = false;

  async function more() {
    if (!hasMore || isAsking) return;
    isAsking = true;
    const found = await get("/api/events", { ...wanted, before: oldest, limit: PAGE }).finally(
      () => (isAsking = false),
    );
    hasMore = found.hasMore;
    for (const event of found.items) add(event, false);
    oldest = found.items.at(-1)?.seq ?? oldest;
    newest ??= found.items[0]?.seq;
    drawBar(found.kinds);
    watch.unobserve(end);
    watch.observe(end);
  }

  /** Adds the events since the last request. */
  async function news() {
    const { items } = await get("/api/events", { ...wanted, after: newest, limit: 100 });
    if (items.length && !known.size) main.querySelector(".empty")?.remove();
    for (const event of items.toReversed()) add(event, true);
    newest = items[0]?.seq ?? newest;
  }

  function add(event, isNew) {
    if (known.has(event.seq)) return;
    known.add(event.seq);
    const day = dayOf(event.created_at_epoch);
    let section = list.querySelector(`[data-day="${day}"]`);
    if (!section) {
      section = h("section", { class: "day", data: { day } }, dayHeading(day), h("ol", { class: "sources" }));
      if (isNew) list.prepend(section);
      else list.append(section);
    }
    const made = row(event);
    if (isNew) made.classList.add("is-fresh");
    const rows = section.querySelector("ol");
    if (isNew) rows.prepend(made);
    else rows.append(made);
  }

  function drawBar(kinds) {
    const choice = (name, label, any, values) => {
      const select = h(
        "select",
        {
          "aria-label": label,
          class: wanted[name] && "is-set",
          on: { change: () => go(withQuery({ [name]: select.value })) },
        },
        h("option", { value: "" }, any),
        values.map(([value, text]) => h("option", { value, selected: value === wanted[name] }, text)),
      );
      return select;
    };
    const names = projects.map(({ project }) => [project, project]);
    fill(
      bar,
      h(
        "div",
        { class: "choices" },
        choice("kind", "Kind", "All kinds", kinds.map((kind) => [kind, kindName(kind)])),
        choice("project", "Project", "All projects", names),
        wanted.session &&
          h(
            "a",
            { class: "chip", href: withQuery({ session: "" }), "aria-label": "Remove the filter session" },
            `session ${wanted.session.slice(0, 8)}`,
          ),
      ),
    );
  }

  const watch = new IntersectionObserver(([seen]) => seen.isIntersecting && more().catch(() => {}), {
    rootMargin: "600px",
  });
  main.append(
    h(
      "header",
      { class: "head" },
      h("h1", null, "Events"),
      h("p", { class: "lead" }, "The log of this machine: everything that was recorded, as it was recorded. Memories are made from it."),
    ),
    bar,
  );
  await more();
  if (!known.size)
    main.append(
      wanted.kind || wanted.project || wanted.session
        ? empty("No events match", "Try fewer filters.", h("a", { class: "button", href: "/events" }, "Show all"))
        : empty("No events yet", "The first prompt is recorded here at once."),
    );
  main.append(list, end);
  const look = calm(150, () => news().catch(() => {}));
  const timer = setInterval(() => document.visibilityState === "visible" && look(), LOOK_MS);
  return {
    title: "Events",
    changed: look,
    returned: look,
    leave: () => {
      clearInterval(timer);
      watch.disconnect();
    },
    up: "/",
  };
}

/** One event. Its content is requested when it is opened. */
function row(event) {
  const { seq, kind, created_at_epoch: at, session, project } = event;
  const body = h("div");
  const details = h(
    "details",
    { class: "raw" },
    h(
      "summary",
      { data: { row: seq } },
      h("span", { class: "when" }, time(at, hour(at), `${inFull(at)}, at ${seq} in the log`)),
      subject(event),
      project && h("span", { class: "of" }, project),
    ),
    body,
  );
  details.addEventListener("toggle", async () => {
    if (!details.open || body.childNodes.length) return;
    const found = await get(`/api/events/${seq}`).catch(() => ({}));
    const { input, output } = found;
    fill(
      body,
      input || output
        ? evidence({ ...event, ...found })
        : h("p", { class: "hint" }, "No text. All fields: ", h("code", null, `claude-mem log ${seq}`)),
      h(
        "p",
        { class: "meta" },
        h("span", null, kindName(kind)),
        h("span", null, `at ${seq}`),
        session && h("a", { href: story(session) }, "Its session"),
        session && h("a", { href: withQuery({ session }, "/events") }, "Events of this session"),
      ),
    );
  });
  return h("li", null, details);
}
