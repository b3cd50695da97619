// All sessions by day, the newest first, with their outcome.
import { get } from "./api.js";
import { calm, h, prose, time } from "./dom.js";
import { cut, dayOf, duration, hour, inFull, many, openEnd } from "./format.js";
import { empty } from "./router.js";
import { dayHeading, story } from "./rows.js";

const PAGE = 40;

export default async function sessions(main, { query }) {
  const project = query.get("project") ?? "";
  const list = h("div", { class: "rows" });
  const end = h("div", { class: "end" });
  const known = new Map();
  let offset = 0;
  let hasMore = true;
  let isAsking = false;

  async function more() {
    if (!hasMore || isAsking) return;
    isAsking = true;
    const found = await get("/api/sessions", { project, limit: PAGE, offset }).finally(
      () => (isAsking = false),
    );
    hasMore = found.hasMore;
    offset += found.items.length;
    for (const session of found.items) put(session, (cards, made) => cards.append(made));
    watch.unobserve(end);
    watch.observe(end);
  }

  function put(session, add) {
    const made = card(session, project);
    known.get(session.id)?.remove();
    known.set(session.id, made);
    add(day(dayOf(session.last_at_epoch)), made);
  }

  /** The list of a day. It is created at its position if it is missing. */
  function day(at) {
    const found = list.querySelector(`[data-day="${at}"] ol`);
    if (found) return found;
    const cards = h("ol", { class: "cards" });
    const older = [...list.children].find((other) => Number(other.dataset.day) < at);
    list.insertBefore(h("section", { class: "day", data: { day: at } }, dayHeading(at), cards), older ?? null);
    return cards;
  }

  const watch = new IntersectionObserver(([seen]) => seen.isIntersecting && more().catch(() => {}), {
    rootMargin: "600px",
  });
  main.append(
    h(
      "header",
      { class: "head" },
      h("h1", null, "Sessions", project && h("span", { class: "about" }, " ", project)),
    ),
  );
  await more();
  main.append(
    known.size ? list : empty("No sessions yet", "A session appears here with its first prompt."),
    end,
  );

  const renew = calm(500, async () => {
    const found = await get("/api/sessions", { project, limit: 5 });
    for (const session of found.items.toReversed()) put(session, (cards, made) => cards.prepend(made));
    for (const section of list.querySelectorAll(".day")) if (!section.querySelector("li")) section.remove();
    main.querySelector(".empty")?.replaceWith(list);
  });
  return {
    title: "Sessions",
    update: undefined,
    changed: (change) => /^(session_|new_)/.test(change.type) && renew().catch?.(() => {}),
    leave: () => watch.disconnect(),
    up: "/",
  };
}

/** A session in a list. */
export function card(session, project) {
  const { content_session_id: id, started_at_epoch: from, last_at_epoch: to } = session;
  const isOpen = session.status === "active" || session.status === "initialized";
  return h(
    "li",
    { class: "card" },
    h(
      "a",
      { class: "headline", href: story(id), data: { row: id } },
      cut(session.title || "A session without a prompt", 160),
    ),
    session.outcome && h("p", { class: "outcome-line" }, h("span", { "aria-hidden": "true" }, "→ "), prose(cut(session.outcome, 220))),
    openEnd(session.next_steps) &&
      h("p", { class: "outcome-line" }, h("b", null, "Next"), " ", prose(cut(openEnd(session.next_steps), 180))),
    h(
      "p",
      { class: "meta" },
      isOpen
        ? h("span", { class: "state" }, h("span", { class: "dot on" }), "open")
        : session.status !== "completed" && h("span", { class: "state" }, session.status),
      time(to ?? from, hour(to ?? from), inFull(to ?? from)),
      project !== session.project &&
        h("a", { href: `/s?project=${encodeURIComponent(session.project)}` }, session.project),
      session.branch && h("span", null, cut(session.branch, 40)),
      h("span", { class: "client" }, session.platform_source),
      to - from > 30_000 && h("span", null, duration(to - from)),
      h("span", null, many(session.prompts, "prompt")),
      session.tool_uses > 0 && h("span", null, many(session.tool_uses, "tool use")),
      session.observations > 0 && h("span", null, many(session.observations, "observation")),
    ),
  );
}
