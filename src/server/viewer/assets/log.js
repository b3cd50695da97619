// Health of the log: damage, pending work, forgotten memories, and diagnostics.
import { get, post } from "./api.js";
import { calm, fill, h, time } from "./dom.js";
import { ago, bytes, count, duration, inFull, many } from "./format.js";
import { undo } from "./forget.js";
import { icon } from "./icons.js";
import { complain, toast } from "./toast.js";

export default async function log(main) {
  const body = h("div");
  main.append(h("header", { class: "head" }, h("h1", null, "Health")), body);

  async function draw() {
    const [health, kept, now, diagnosticLines, { items }] = await Promise.all([
      condition(),
      get("/api/health/log"),
      get("/api/processing"),
      get("/api/logs", { lines: 200 }),
      get("/api/forgettings"),
    ]);
    const isHealthy = health.status === "ok" && !kept.gaps.length && !kept.unreadable && !kept.parked;
    const isOpen = body.querySelector(".diagnostics")?.open;
    fill(
      body,
      verdict(isHealthy, health, kept, now.problem),
      figures(health, kept, now),
      gaps(kept.gaps),
      forgotten(items, draw),
      diagnostics(diagnosticLines, isOpen),
    );
  }
  await draw();
  if (location.hash === "#forgotten")
    requestAnimationFrame(() => body.querySelector("#forgotten")?.scrollIntoView());
  const renew = calm(1_000, () => draw().catch(() => {}));
  return {
    title: "Health",
    changed: (change) => /^(new_|processing|forgotten|observation_)/.test(change.type) && renew(),
    up: "/",
  };
}

/** An unhealthy worker answers with an error and the reason. */
function condition() {
  return get("/health").catch((error) => (error.body?.status ? error.body : Promise.reject(error)));
}

function verdict(isHealthy, health, kept, problem) {
  const troubles = [
    ...(health.problems ?? []),
    health.status === "unhealthy" && !health.problems?.length && "The worker is stuck",
    // The banner above shows what to do about it.
    problem && !kept.parked && `${problem.message}; ${problem.meaning}`,
    kept.gaps.length > 0 && `${many(kept.gaps.length, "place")} in the log cannot be read`,
    kept.unreadable > 0 &&
      `${many(kept.unreadable, "reply", "replies")} are unreadable and kept`,
    kept.parked > 0 && `${many(kept.parked, "event")} parked`,
  ].filter(Boolean);
  return h(
    "div",
    { class: `verdict ${isHealthy ? "healthy" : "unhealthy"}` },
    icon(isHealthy ? "check" : "alert"),
    h(
      "div",
      null,
      h("p", { class: "strong" }, isHealthy ? "Healthy" : "Needs attention"),
      isHealthy
        ? h("p", null, `All ${count(kept.events)} events are readable.`)
        : h(
            "ul",
            null,
            troubles.map((text) => h("li", null, text)),
          ),
    ),
    kept.parked > 0 && h("code", null, "claude-mem distill retry"),
  );
}

function figures(health, kept, now) {
  const figure = (name, value, note) =>
    h("div", null, h("dt", null, name), h("dd", null, value, note && h("small", null, note)));
  const wake = () => post("/api/processing").then(() => toast("Distilling now"), complain);
  return [
    h(
      "dl",
      { class: "figures" },
      figure("Events", count(kept.events)),
      figure("Segments", count(kept.segments)),
      figure("Size", bytes(kept.bytes)),
      figure(
        "Pending",
        count(now.queueDepth),
        now.lag_s >= 1 ? `for ${duration(now.lag_s * 1000)}` : undefined,
      ),
      figure("Not indexed", count(now.lag_events ?? 0)),
      figure("Parked", count(kept.parked)),
      health.vectors?.total > 0 &&
        figure(
          "Not embedded",
          count(health.vectors.missing),
          `of ${count(health.vectors.total)}`,
        ),
    ),
    h(
      "p",
      { class: "meta" },
      h("span", null, `Version ${health.version}`),
      health.pid && h("span", null, `pid ${health.pid}`),
      health.data_dir && h("code", null, health.data_dir),
      now.queueDepth > 0 && h("button", { class: "link", type: "button", on: { click: wake } }, "Distill now"),
    ),
  ];
}

function gaps(all) {
  return (
    all.length > 0 &&
    h(
      "section",
      null,
      h("h2", { class: "rule" }, "Damage"),
      h(
        "div",
        { class: "scroll", tabindex: 0 },
        h(
          "table",
          null,
          h(
            "thead",
            null,
            h(
              "tr",
              null,
              ["Segment", "Byte", "Length", "What"].map((name) => h("th", { scope: "col" }, name)),
            ),
          ),
          h(
            "tbody",
            null,
            all.map((gap) =>
              h(
                "tr",
                null,
                h("td", null, h("code", null, gap.segment)),
                h("td", null, count(gap.offset)),
                h("td", null, bytes(gap.bytes)),
                h("td", null, gap.reason),
              ),
            ),
          ),
        ),
      ),
      h(
        "p",
        { class: "hint" },
        "All other events were read. Repair it from a backup: ",
        h("code", null, "claude-mem verify --repair"),
      ),
    )
  );
}

function forgotten(items, draw) {
  const way = ({ id, is_void: isVoid, is_final: isFinal }) => {
    if (isVoid) return h("span", { class: "badge" }, "undone");
    if (isFinal) return h("span", { class: "badge" }, "erased");
    const run = () => undo(id).then((isDone) => isDone && draw(), complain);
    return h("button", { class: "button", type: "button", on: { click: run } }, "Undo");
  };
  const row = (each) => {
    const { id, created_at: at, memories, titles } = each;
    const [first, ...rest] = titles;
    const more = memories - titles.length;
    return h(
      "li",
      { class: "card" },
      h(
        "p",
        { class: "row-head" },
        h("b", null, first ?? many(memories, "memory", "memories")),
        way(each),
      ),
      rest.length > 0 && h("ul", { class: "points" }, rest.map((title) => h("li", null, title))),
      h(
        "p",
        { class: "meta" },
        h("span", { title: id }, time(Date.parse(at), ago(Date.parse(at)), inFull(Date.parse(at)))),
        memories > 1 && h("span", null, many(memories, "memory", "memories")),
        titles.length > 1 && more > 0 && h("span", null, `${count(more)} more`),
      ),
    );
  };
  return (
    items.length > 0 &&
    h(
      "section",
      { id: "forgotten" },
      h("h2", { class: "rule" }, "Forgotten"),
      h("p", { class: "hint" }, "Can be undone until the log is compacted."),
      h("ol", { class: "cards" }, items.slice(0, 30).map(row)),
    )
  );
}

function diagnostics(diagnosticLines, isOpen) {
  return h(
    "section",
    null,
    h("h2", { class: "rule" }, "Diagnostics"),
    diagnosticLines.exists && diagnosticLines.logs
      ? h(
          "details",
          { class: "raw diagnostics", open: isOpen },
          h("summary", null, `The last ${many(diagnosticLines.returnedLines, "line")} of ${diagnosticLines.path}`),
          h("pre", { tabindex: 0 }, diagnosticLines.logs),
        )
      : h("p", { class: "hint" }, "No warnings or errors."),
  );
}
