// Reprocessing: estimate, start, progress, and earlier generations.
import { get, post, remove } from "./api.js";
import { calm, fill, h, prose, time } from "./dom.js";
import { ago, brief, count, inFull, many, money, version } from "./format.js";
import { projects, refresh } from "./sidebar.js";
import { complain, toast } from "./toast.js";

const PROVIDERS = ["", "auto", "claude", "anthropic", "openai", "extract"];
const STATES = {
  distilling: "Distilling",
  folding: "Indexing",
  finished: "Finished",
  failed: "Failed",
  cancelled: "Cancelled",
};

export default async function replay(main) {
  if (!projects.length) await refresh().catch(() => {});
  const running = h("section", { class: "running", "aria-label": "Going on now" });
  const past = h("section", { "aria-label": "Generations" });
  const estimate = h("div", { class: "estimate", role: "status" });
  const form = replayForm(estimate);
  main.append(
    h(
      "header",
      { class: "head" },
      h("h1", null, "Replay"),
      h(
        "p",
        { class: "lead" },
        "Rebuilds memories from the log with the current prompt or another model. Recorded events stay unchanged, and recorded responses are reused for free.",
      ),
    ),
    running,
    form.element,
    past,
  );

  async function draw() {
    const { items, running: now } = await get("/api/replays");
    fill(running, now && progress(now));
    form.isBusy(isGoing(now));
    fill(
      past,
      items.length > 0 && [
        h("h2", { class: "rule" }, "Generations"),
        h("ol", { class: "cards" }, items.map(generation)),
      ],
    );
  }
  await draw();
  const renew = calm(200, () => draw().catch(() => {}));
  form.started = (now) => {
    fill(running, progress(now));
    form.isBusy(isGoing(now));
    renew();
  };
  return {
    title: "Replay",
    changed(change) {
      if (change.type !== "replay_progress") return;
      fill(running, progress(change.replay));
      form.isBusy(isGoing(change.replay));
      if (!isGoing(change.replay)) renew();
    },
    up: "/",
  };
}

/** Presets for common requests. Each fills the form and starts the estimate. */
const PRESETS = [
  ["Last 7 days, preview", { since: "7d", shadow: true }],
  ["New prompt, last 7 days", { since: "7d", shadow: true, isPromptOpen: true }],
  ["Built-in rules, last 30 days", { since: "30d", provider: "extract", shadow: true }],
  ["Rebuild everything", {}],
];

const isGoing = (now) => now?.state === "distilling" || now?.state === "folding";

/** The form, and the estimated cost. */
function replayForm(estimate) {
  const field = (label, input, note) =>
    h("label", { class: "field" }, h("span", null, label), input, note && h("small", null, note));
  const check = (name, label, note) =>
    h(
      "label",
      { class: "check" },
      h("input", { type: "checkbox", name }),
      h("span", null, label, h("small", null, note)),
    );
  const start = h("button", { class: "button primary", type: "submit", disabled: true }, "Start");
  const dry = h("button", { class: "button", type: "button", on: { click: ask } }, "Estimate");
  const element = h(
    "form",
    {
      class: "replay-form",
      on: {
        submit: begin,
        input: () => {
          start.disabled = true;
          fill(estimate);
        },
      },
    },
    h(
      "div",
      { class: "presets", role: "group", "aria-label": "Presets" },
      PRESETS.map(([text, values]) =>
        h("button", { type: "button", class: "chip", on: { click: () => preset(values) } }, text),
      ),
    ),
    h(
      "div",
      { class: "grid" },
      field(
        "Since",
        h("input", { name: "since", placeholder: "The beginning", list: "moments" }),
        "A day, or 30d",
      ),
      field("Until", h("input", { name: "until", placeholder: "Now" })),
      field(
        "Project",
        h(
          "select",
          { name: "project" },
          h("option", { value: "" }, "All projects"),
          projects.map(({ project }) => h("option", null, project)),
        ),
      ),
      field("Session", h("input", { name: "session", placeholder: "All sessions" })),
      field(
        "Provider",
        h(
          "select",
          { name: "provider" },
          PROVIDERS.map((name) => h("option", { value: name }, name || "Use the setting")),
        ),
      ),
      field("Model", h("input", { name: "model", placeholder: "Use the setting" })),
    ),
    h(
      "datalist",
      { id: "moments" },
      ["1d", "7d", "30d", "90d"].map((value) => h("option", { value })),
    ),
    instructions(),
    h(
      "div",
      { class: "checks" },
      check("shadow", "Preview only", "Keeps the current memories until you switch"),
      check("fresh", "Ignore recorded responses", "Sends every request again, which costs money"),
    ),
    estimate,
    h("p", { class: "actions" }, dry, start),
  );
  const made = {
    element,
    started: () => {},
    isBusy(isBusy) {
      dry.disabled = isBusy;
      if (isBusy) start.disabled = true;
    },
  };

  function preset({ isPromptOpen = false, ...values }) {
    element.reset();
    for (const [name, value] of Object.entries(values)) {
      if (value === true) element.elements[name].checked = true;
      else element.elements[name].value = value;
    }
    element.querySelector(".instructions").open = isPromptOpen;
    start.disabled = true;
    fill(estimate);
    if (isPromptOpen) return element.elements.prompt_text.focus();
    return dry.disabled ? undefined : ask();
  }

  const body = () => {
    const data = new FormData(element);
    const texts = Object.fromEntries(
      [...data].filter(([name, value]) => value && name !== "shadow" && name !== "fresh"),
    );
    return { ...texts, shadow: data.has("shadow"), fresh: data.has("fresh") };
  };

  async function ask() {
    dry.disabled = true;
    fill(estimate, h("p", { class: "hint" }, "Looking through the log…"));
    try {
      const found = await post("/api/replays", { ...body(), dry_run: true });
      fill(estimate, figures(found));
      start.disabled = false;
      made.isBeyond = found.is_beyond_cap;
    } catch (error) {
      fill(
        estimate,
        h("p", { class: "wrong" }, prose([error.message, error.remedy].filter(Boolean).join(". "))),
      );
    } finally {
      dry.disabled = false;
    }
  }

  async function begin(event) {
    event.preventDefault();
    if (start.disabled) return ask();
    start.disabled = true;
    try {
      made.started(await post("/api/replays", { ...body(), yes: Boolean(made.isBeyond) }));
      fill(estimate);
    } catch (error) {
      complain(error);
    }
    return undefined;
  }
  return made;
}

/** Instructions instead of the current ones: written here, or from a file, of which only the text is sent. */
function instructions() {
  const text = h("textarea", {
    name: "prompt_text",
    rows: 8,
    maxlength: 256 * 1024,
    "aria-label": "Prompt",
    placeholder: "Instructions for the model, instead of the current ones",
  });
  const file = h("input", { type: "file", accept: ".txt,.md,text/*", "aria-label": "Prompt file" });
  // Text that was changed by hand is no longer the text of the file.
  text.addEventListener("input", (event) => event.isTrusted && (file.value = ""));
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    try {
      text.value = await chosen.text();
    } catch (error) {
      complain(error);
    }
    text.dispatchEvent(new Event("input", { bubbles: true }));
  });
  return h(
    "details",
    { class: "instructions" },
    h("summary", null, "Custom prompt"),
    h("p", { class: "hint" }, "After you switch, it also applies to new events. Types and the response format are added to it."),
    text,
    h("p", { class: "from" }, h("span", null, "or from a file"), file),
  );
}

function figures(found) {
  const figure = (name, value) => h("div", null, h("dt", null, name), h("dd", null, value));
  return [
    h(
      "dl",
      { class: "figures" },
      figure("Events", brief(found.events)),
      figure("Requests", brief(found.requests)),
      figure("Model calls", brief(found.calls)),
      figure("Tokens", found.calls ? `${brief(found.tokens_in)} → ${brief(found.tokens_out)}` : "None"),
      figure(
        "Money",
        found.cost_usd === null && found.calls ? "Unknown" : found.cost_usd ? `about ${money(found.cost_usd)}` : "None",
      ),
    ),
    h(
      "p",
      { class: "hint" },
      found.requests
        ? [
            found.calls ? found.model || found.provider : "The built-in rules, which call no model",
            ", prompt ",
            h("code", null, version(found.prompt_version)),
            ". ",
          ]
        : "All responses are recorded: no request is sent, only the database is rebuilt. ",
      found.is_begun && "Continues an interrupted one. ",
      found.is_beyond_cap &&
        h("b", { class: "wrong" }, "This exceeds the daily cap. Starting it confirms that."),
    ),
  ];
}

function progress(now) {
  const isOn = isGoing(now);
  const stop =
    isOn &&
    h(
      "button",
      {
        class: "button",
        type: "button",
        on: {
          click: () =>
            remove(`/api/replays/${encodeURIComponent(now.id)}`).then(
              () => toast("Stopping; you can continue later"),
              complain,
            ),
        },
      },
      "Cancel",
    );
  return h(
    "div",
    { class: `progress is-${now.state}` },
    h(
      "p",
      { class: "row-head" },
      h("b", null, isOn && h("span", { class: "dot busy" }), STATES[now.state] ?? now.state),
      stop,
    ),
    h("progress", {
      max: Math.max(now.total, 1),
      value: now.state === "finished" ? Math.max(now.total, 1) : now.answered,
      "aria-label": "Completed requests",
    }),
    h(
      "p",
      { class: "meta" },
      h("span", null, `${count(now.answered)} of ${many(now.total, "request")}`),
      now.tokens_in + now.tokens_out > 0 &&
        h("span", null, `${brief(now.tokens_in + now.tokens_out)} tokens`),
      now.cost_usd > 0 && h("span", null, money(now.cost_usd)),
      now.parked > 0 && h("span", { class: "wrong" }, `${count(now.parked)} parked`),
      now.state === "finished" &&
        now.generation > 0 &&
        h("a", { href: `/replay/${now.generation}` }, "What it changed"),
    ),
    now.message && h("p", { class: now.state === "failed" ? "wrong" : "hint" }, prose(now.message)),
  );
}

function generation(each) {
  const made = Date.parse(each.created_at);
  const span = [
    each.project,
    each.session && `session ${each.session.slice(0, 8)}`,
    each.since && `since ${String(each.since).slice(0, 10)}`,
    each.until && `until ${String(each.until).slice(0, 10)}`,
  ]
    .filter(Boolean)
    .join(", ");
  return h(
    "li",
    { class: "card" },
    h(
      "a",
      { class: "headline", href: `/replay/${each.generation}`, data: { row: `g${each.generation}` } },
      `Generation ${each.generation}`,
    ),
    h(
      "p",
      { class: "meta" },
      each.is_current
        ? h("span", { class: "badge" }, "shown")
        : h("span", null, each.is_finished ? (each.is_shadow ? "preview" : "replaced") : "incomplete"),
      h("span", null, each.model || each.provider),
      each.prompt_version && h("code", { title: each.prompt_version }, version(each.prompt_version)),
      h("span", null, span || "everything"),
      time(made, ago(made), inFull(made)),
    ),
  );
}
