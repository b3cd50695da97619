// All sessions, the newest first.
import { get } from "./api.js";
import { calm, h, time } from "./dom.js";
import { ago, cut, duration, inFull, many } from "./format.js";
import { empty } from "./router.js";
import { story } from "./rows.js";

const PAGE = 40;

export default async function sessions(main, { query }) {
  const project = query.get("project") ?? "";
  const list = h("ol", { class: "cards" });
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
    for (const session of found.items) {
      const made = card(session, project);
      known.get(session.id)?.remove();
      known.set(session.id, made);
      list.append(made);
    }
    watch.unobserve(end);
    watch.observe(end);
  }

  const watch = new IntersectionObserver(([seen]) => seen.isIntersecting && more().catch(() => {}), {
    rootMargin: "600px",
  });
  main.append(
    h(
      "header",
      { class: "head" },
      h("h1", null, "Sessions"),
      project && h("p", { class: "about" }, "of ", h("b", null, project)),
    ),
  );
  await more();
  main.append(
    known.size ? list : empty("No sessions yet", "A session appears here with its first prompt."),
    end,
  );

  const renew = calm(500, async () => {
    const found = await get("/api/sessions", { project, limit: 5 });
    for (const session of found.items.toReversed()) {
      const made = card(session, project);
      if (known.has(session.id)) known.get(session.id).replaceWith(made);
      else list.prepend(made);
      known.set(session.id, made);
    }
    main.querySelector(".empty")?.replaceWith(list);
  });
  return {
    title: "Sessions",
    update: undefined,
    changed: (change) => /^(session_|new_)/.test(change.type) && renew(),
    leave: () => watch.disconnect(),
    up: "/",
  };
}

function card(session, project) {
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
    h(
      "p",
      { class: "meta" },
      isOpen
        ? h("span", { class: "state" }, h("span", { class: "dot on" }), "open")
        : session.status !== "completed" && h("span", { class: "state" }, session.status),
      project !== session.project &&
        h("a", { href: `/s?project=${encodeURIComponent(session.project)}` }, session.project),
      time(to ?? from, ago(to ?? from), inFull(to ?? from)),
      to - from > 30_000 && h("span", null, duration(to - from)),
      h("span", null, many(session.prompts, "prompt")),
      h("span", null, many(session.tool_uses, "tool use")),
      h("span", null, many(session.observations, "observation")),
    ),
  );
}
