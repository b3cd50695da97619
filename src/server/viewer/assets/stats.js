// Statistics: events, memories, cost and lag.
import { get } from "./api.js";
import { bars, calendar, columns } from "./chart.js";
import { calm, fill, h } from "./dom.js";
import { brief, bytes, count, duration, isoDay, many, money } from "./format.js";
import { empty, go, withQuery } from "./router.js";

const SPANS = [
  [14, "2 weeks"],
  [30, "30 days"],
  [90, "90 days"],
  [365, "A year"],
];

const BARS_MAX = 10;
/** Below this, the size of the log needs no chart. */
const LOG_BYTES_SHOWN = 100_000_000;

export default async function stats(main, { query }) {
  const span = Number(query.get("days")) || 30;
  const project = query.get("project") ?? "";
  const figures = h("dl", { class: "figures" });
  const charts = h("div", { class: "charts" });
  const pick = h(
    "select",
    {
      "aria-label": "Time",
      on: { change: () => go(withQuery({ days: pick.value === "30" ? "" : pick.value })) },
    },
    SPANS.map(([days, text]) => h("option", { value: days, selected: days === span }, text)),
  );
  main.append(
    h(
      "header",
      { class: "head row-head" },
      h("h1", null, "Stats", project && h("span", { class: "about" }, " ", project)),
      pick,
    ),
    figures,
    charts,
  );

  async function draw() {
    const [all, period, now] = await Promise.all([
      get("/api/stats"),
      get("/api/stats/daily", { days: span, project }),
      get("/api/processing"),
    ]);
    const days = whole(period.days, span);
    fill(figures, top(all, days, period, now));
    fill(
      charts,
      period.days.some((day) => day.events)
        ? inPairs(plots(days, all, period, project).filter(Boolean))
        : all.log.events
          ? empty("No events in this period", "Choose a longer one, or another project.")
          : empty("No events yet", "Charts appear with your first session."),
    );
  }
  await draw();
  const renew = calm(5_000, () => draw().catch(() => {}));
  return {
    title: "Stats",
    changed: (change) => /^(new_|forgotten|processing)/.test(change.type) && renew(),
    up: "/",
  };
}

/** Every day up to today, including days without events. */
function whole(found, span) {
  const known = new Map(found.map((day) => [day.day, day]));
  const none = {
    events: 0,
    prompts: 0,
    tool_uses: 0,
    observations: 0,
    summaries: 0,
    tokens_in: 0,
    tokens_out: 0,
  };
  const today = new Date();
  return Array.from({ length: span }, (_, at) => {
    const date = new Date(today.getFullYear(), today.getMonth(), today.getDate() - (span - 1 - at), 12);
    const day = isoDay(date);
    return known.get(day) ?? { ...none, day, cost_usd: 0, log_bytes: 0 };
  });
}

/** Figures of the chosen period and project. Size and lag are always those of the whole memory. */
function top({ database, log, worker }, days, { sessions }, now) {
  const figure = (name, value, note) =>
    h("div", null, h("dt", null, name), h("dd", null, value, note && h("small", null, note)));
  const sum = (key) => days.reduce((total, day) => total + (day[key] ?? 0), 0);
  const waiting = now.queueDepth ?? 0;
  return [
    figure("Observations", brief(sum("observations")), `${brief(sum("summaries"))} summaries`),
    figure("Sessions", brief(sessions), `${brief(sum("prompts"))} prompts`),
    figure("Events", brief(sum("events")), `${brief(sum("tool_uses"))} tool uses`),
    figure("Spent", money(sum("cost_usd")), "in this period"),
    figure("Log", bytes(log.size), `all projects; tables ${bytes(database.size)}`),
    figure(
      "Pending",
      waiting ? count(waiting) : "None",
      now.lag_s >= 1 ? `for ${duration(now.lag_s * 1000)}` : `worker up ${duration(worker.uptime * 1000)}`,
    ),
  ];
}

/** Two per row. A single one in the last row takes the whole row. */
function inPairs(figures) {
  const pairs = figures.filter((figure) => !figure.matches(".calendar"));
  if (pairs.length % 2) pairs.at(-1).classList.add("whole");
  return figures;
}

/** The largest projects, and the sum of the others, so that the bars add up to the total. */
function largest(projects, key) {
  const rows = projects
    .map(({ project: name, [key]: value }) => ({ name, value }))
    .filter(({ value }) => value)
    .sort((a, b) => b.value - a.value);
  if (rows.length <= BARS_MAX) return rows;
  const rest = rows.splice(BARS_MAX - 1);
  const value = rest.reduce((sum, row) => sum + row.value, 0);
  return [...rows, { name: many(rest.length, "other project"), value, isRest: true }];
}

/** The feed of one day. */
const dayAddress = (project) => (day) => {
  const filters = new URLSearchParams({ since: day, until: day });
  if (project) filters.set("project", project);
  return `/?${filters}`;
};

function plots(days, { log }, { projects, types }, project) {
  let size = Math.max(0, log.size - days.reduce((sum, day) => sum + day.log_bytes, 0));
  const grown = days.map((day) => ({ day: day.day, size: (size += day.log_bytes) }));
  const others = days.map((day) => ({
    ...day,
    other: Math.max(0, day.events - day.tool_uses - day.prompts),
  }));
  const busy = largest(projects, "events");
  const paid = largest(projects, "cost_usd");
  const link = dayAddress(project);
  return [
    days.length > 90 &&
      calendar({
        title: "Activity",
        days,
        link,
        value: (day) => day.prompts + day.tool_uses + day.observations,
        text: (day) => `${many(day.observations, "observation")}, ${many(day.prompts, "prompt")}`,
      }),
    columns({
      title: "Events",
      days: others,
      format: brief,
      link,
      series: [
        { name: "Tool uses", key: "tool_uses", style: "one" },
        { name: "Prompts", key: "prompts", style: "two" },
        { name: "Others", key: "other", style: "three" },
      ],
    }),
    columns({
      title: "Observations and summaries",
      days,
      format: brief,
      link,
      series: [
        { name: "Observations", key: "observations", style: "one" },
        { name: "Summaries", key: "summaries", style: "two" },
      ],
    }),
    // The built-in rules use neither tokens nor money.
    days.some((day) => day.tokens_in) &&
      columns({
        title: "Tokens",
        days,
        format: brief,
        link,
        series: [
          { name: "Read", key: "tokens_in", style: "one" },
          { name: "Written", key: "tokens_out", style: "two" },
        ],
      }),
    days.some((day) => day.cost_usd) &&
      columns({
        title: "Money",
        days,
        format: money,
        link,
        series: [{ name: "Dollars", key: "cost_usd", style: "one" }],
      }),
    !project &&
      log.size >= LOG_BYTES_SHOWN &&
      columns({
        title: "Size of the log",
        days: grown,
        format: bytes,
        isLine: true,
        note: bytes(log.size),
        series: [{ name: "Bytes", key: "size", style: "one" }],
      }),
    types.length > 0 &&
      bars({
        title: "Observations by type",
        rows: types.map(({ type, observations: value }) => ({ name: type, value })),
        format: brief,
        text: (type) => `${type[0].toUpperCase()}${type.slice(1)}`.replaceAll("_", " "),
        link: (type) =>
          `/?${new URLSearchParams({ kind: "observation", type, since: days[0].day, ...(project && { project }) })}`,
      }),
    !project &&
      busy.length > 0 &&
      bars({
        title: "Events by project",
        rows: busy,
        format: brief,
        link: (name) => `/?project=${encodeURIComponent(name)}`,
      }),
    !project &&
      paid.length > 0 &&
      bars({
        title: "Money by project",
        rows: paid.map((row) => ({ ...row, style: "two" })),
        format: money,
        link: (name) => `/stats?project=${encodeURIComponent(name)}`,
      }),
  ];
}
