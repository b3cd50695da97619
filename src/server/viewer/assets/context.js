// The exact context of a new session, and its share of the budget.
import { get } from "./api.js";
import { calm, fill, h } from "./dom.js";
import { bytes, count, many } from "./format.js";
import { empty, go, withQuery } from "./router.js";
import { copyButton } from "./selection.js";
import { copyText } from "./toast.js";
import { projects, refresh } from "./sidebar.js";

export default async function context(main, { query }) {
  if (!projects.length) await refresh();
  const project = query.get("project") || projects[0]?.project;
  if (!project) {
    main.append(h("header", { class: "head" }, h("h1", null, "Context")), empty("No projects yet", "The context of a session depends on its project."));
    return { title: "Context", up: "/" };
  }
  const budget = query.get("budget") ?? "";
  const pick = h(
    "select",
    { "aria-label": "Project", on: { change: () => go(withQuery({ project: pick.value })) } },
    projects.map((each) => h("option", { selected: each.project === project }, each.project)),
  );
  const used = h("div", { class: "budget" });
  const text = h("div", { class: "context-text" });
  main.append(
    h("header", { class: "head row-head" }, h("h1", null, "Context"), pick),
    h(
      "p",
      { class: "lead" },
      "What Claude receives when a session starts in ",
      h("b", null, project),
      ": exactly this text, up to the token budget.",
    ),
    h("p", { class: "actions" }, copyButton(() => copy())),
    used,
    text,
  );
  let shown = "";
  const copy = () => copyText(shown, "Context copied");

  async function draw(tokens) {
    const preview = await get("/api/context/preview", { project, budget: tokens });
    shown = preview.text ?? "";
    fill(used, meter(preview, slide));
    fill(
      text,
      preview.text
        ? h("pre", { class: "paper", tabindex: 0, "aria-label": "The text" }, lines(preview.text))
        : empty("Nothing yet", "There are no memories of this project yet."),
    );
  }
  const slide = calm(150, (tokens) => {
    history.replaceState(history.state, "", withQuery({ budget: tokens }));
    draw(tokens).catch(() => {});
  });
  await draw(budget);
  const renew = calm(1_000, () =>
    draw(new URLSearchParams(location.search).get("budget") ?? "").catch(() => {}),
  );
  return {
    title: `Context of ${project}`,
    changed: (change) => /^(new_|forgotten)/.test(change.type) && renew(),
    up: "/",
    keys: { y: copy },
  };
}

function meter(preview, slide) {
  const { tokens, tokens_max: max, observations, observations_total: all } = preview;
  const range = h("input", {
    type: "range",
    min: 0,
    max: 8000,
    step: 100,
    value: max,
    "aria-label": "Try another budget, in tokens",
    on: { input: () => slide(range.value) },
  });
  return [
    h("p", { class: "figure" }, h("b", null, count(tokens)), ` of ${count(max)} tokens`),
    h("meter", {
      min: 0,
      max: Math.max(max, 1),
      value: Math.min(tokens, max),
      "aria-label": "Tokens used of the budget",
    }),
    h(
      "p",
      { class: "meta" },
      h("span", null, `${count(observations)} of ${many(all, "observation")}`),
      h("span", null, bytes(preview.bytes)),
    ),
    h("label", { class: "try" }, h("span", null, "Try another budget"), range),
  ];
}

/** Highlights headings, and links ids to their memories. */
function lines(text) {
  return text.split("\n").map((line) => {
    const name = /^(?:- )?#?((?<=#)\d+|S\d+) /.exec(line);
    const end = "\n";
    if (/^#+ /.test(line)) return [h("b", null, line), end];
    if (line.startsWith("<")) return [h("i", null, line), end];
    if (!name) return [line, end];
    const from = line.indexOf(name[1]);
    return [
      line.slice(0, from),
      h("a", { href: `/m/${name[1]}` }, name[1]),
      line.slice(from + name[1].length),
      end,
    ];
  });
}
