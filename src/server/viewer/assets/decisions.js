// Decisions and rules that are valid now, the newest first.
import { get } from "./api.js";
import { calm, fill, h } from "./dom.js";
import { empty, withQuery } from "./router.js";
import { Rows, item } from "./rows.js";
import { Selection } from "./selection.js";

const PAGE = 50;
const TYPES = [
  ["", "Both", "decision,rule"],
  ["decision", "Decisions", "decision"],
  ["rule", "Rules", "rule"],
];

export default async function decisions(main, { query }) {
  const project = query.get("project") ?? "";
  const chosen = query.get("type") ?? "";
  const type = (TYPES.find(([name]) => name === chosen) ?? TYPES[0])[2];
  const list = h("div");
  const end = h("div", { class: "end" });
  const selection = new Selection(list);
  let rows;
  let next;

  async function more() {
    if (next === null) return;
    const { items, nextBefore } = await get("/api/observations", { project, type, limit: PAGE, before: next });
    rows.append(items.map((row) => item(row, "observation")));
    next = nextBefore;
    watch.unobserve(end);
    watch.observe(end);
  }
  async function draw() {
    rows = new Rows({ project, isByDay: true });
    next = undefined;
    await more();
    fill(
      list,
      rows.size
        ? rows.element
        : empty("None yet", "Decisions are distilled from sessions. You can also write one yourself with n."),
    );
  }
  const watch = new IntersectionObserver(([seen]) => seen.isIntersecting && rows && more().catch(() => {}), {
    rootMargin: "600px",
  });
  main.append(
    h(
      "header",
      { class: "head" },
      h("h1", null, "Decisions", project && h("span", { class: "about" }, " ", project)),
      h("p", { class: "lead" }, "What was decided, and rules to keep. Superseded ones are left out."),
    ),
    h(
      "ul",
      { class: "tabs", "aria-label": "Type" },
      TYPES.map(([name, text]) =>
        h("li", null, h("a", { href: withQuery({ type: name }), "aria-current": name === chosen ? "true" : undefined }, text)),
      ),
    ),
    list,
    end,
    selection.bar,
  );
  await draw();
  const renew = calm(500, () => draw().catch(() => {}));
  return {
    title: "Decisions",
    changed: (change) => /^(new_observation|forgotten)/.test(change.type) && renew(),
    keys: selection.keys,
    leave: () => watch.disconnect(),
    up: "/",
  };
}
