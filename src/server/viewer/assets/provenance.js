// Provenance of a memory: events, request, response, and other generations.
import { h, prose, time } from "./dom.js";
import { evidence, subject } from "./evidence.js";
import { count, dayName, duration, hour, inFull, many, money, version } from "./format.js";
import { icon, mark } from "./icons.js";
import { address, item, label } from "./rows.js";

const STATES = {
  same: "unchanged since",
  changed: "changed since",
  gone: "no longer there",
};
const ORIGINS = {
  user: "Written by hand",
  claude: "Written by Claude",
  program: "Written by a program",
  import: "Imported",
  hook: "Recorded by a hook",
};

/** The section below a memory. */
export function provenance(memory, from) {
  showFreshness(from.freshness ?? []);
  const others = (from.generations ?? []).filter((generation) => generation.memories.length > 0);
  return [
    from.correction && correction(from.correction),
    h("h2", { class: "rule" }, "Where it comes from"),
    path(memory, from),
    from.usage && usage(from.usage),
    from.sources.length > 0 &&
      h(
        "section",
        null,
        h("h3", null, many(from.sources.length, "event")),
        h("ol", { class: "sources" }, from.sources.map(source)),
      ),
    from.reply?.text &&
      h(
        "section",
        null,
        h("h3", null, "Response"),
        h(
          "details",
          { class: "raw" },
          h("summary", null, `${count(from.reply.text.length)} characters, unchanged`),
          h("pre", { tabindex: 0 }, from.reply.text),
        ),
      ),
    others.length > 1 && generations(memory, others),
  ];
}

/** The memory that replaced a wrong one. */
function correction({ id, title, created_at: at }) {
  const by = id && h("a", { href: address(`${id}`) }, prose(title || `#${id}`));
  return h("p", { class: "meta" }, by ? ["Superseded by ", by] : ["Withdrawn ", time(at, dayName(at), inFull(at))]);
}

/** How often sessions used it. */
function usage({ sessions, fetches }) {
  if (sessions + fetches === 0) return null;
  return h("p", { class: "meta" }, `Given to ${many(sessions, "session")}, fetched ${many(fetches, "time")}`);
}

/** Three steps: the events, the request to the provider, the memory. */
function path(memory, { reply, sources, origin, seq, event, created_at: at }) {
  const step = (title, ...lines) => h("li", null, h("span", { class: "label" }, title), lines);
  const line = (text, style) => text && h("span", { class: style }, text);
  if (!reply) {
    return h(
      "ol",
      { class: "path" },
      step(
        "Event",
        line(ORIGINS[origin] ?? origin, "strong"),
        h("span", { title: event }, `at ${seq} in the log`),
      ),
      step(
        "Memory",
        line(memory.kind === "observation" ? `#${memory.id}` : memory.name, "strong"),
        line(inFull(Date.parse(at))),
      ),
    );
  }
  const tools = new Set(sources.map(({ tool }) => tool).filter(Boolean)).size;
  return h(
    "ol",
    { class: "path" },
    step(
      "Events",
      line(many(sources.length, "event"), "strong"),
      line(tools > 0 && many(tools, "tool")),
    ),
    step(
      "Request",
      line(reply.model || reply.provider, "strong"),
      line(reply.provider !== reply.model && `through ${reply.provider}`),
      h(
        "span",
        null,
        "prompt ",
        h("code", { title: reply.prompt_version }, version(reply.prompt_version)),
      ),
    ),
    step(
      "Response",
      line(
        reply.tokens_in + reply.tokens_out > 0
          ? `${count(reply.tokens_in)} → ${count(reply.tokens_out)} tokens`
          : "No tokens",
        "strong",
      ),
      h("span", { title: `at ${seq} in the log` }, `${price(reply)}, ${duration(reply.duration_ms)}`),
    ),
    step(
      "Memory",
      line(memory.kind === "observation" ? `#${memory.id}` : memory.name, "strong"),
      line(reply.memories > 1 ? `one of ${reply.memories} from this response` : "the only one"),
      line(reply.generation ? `generation ${reply.generation}` : "during the session"),
    ),
  );
}

/** A subscription has no price per token, and a model that is not in the price list has none either. */
function price({ cost_usd: cost, tokens_in: read, tokens_out: written }) {
  if (cost) return money(cost);
  return read + written > 0 ? "price unknown" : "free";
}

/** One event: a line about it, and its content. */
function source(event) {
  const { seq, created_at_epoch: at, input, output } = event;
  const head = [subject(event), time(at, hour(at), `${inFull(at)}, at ${seq} in the log`)];
  if (!input && !output) return h("li", null, h("p", null, head));
  return h("li", null, h("details", { class: "raw" }, h("summary", null, head), evidence(event)));
}

/** The memories of each generation for the same events, side by side. */
function generations(memory, all) {
  const column = ({
    generation,
    is_current: isCurrent,
    provider,
    model,
    prompt_version: prompt,
    created_at: at,
    memories,
  }) =>
    h(
      "section",
      { class: `generation${isCurrent ? " is-current" : ""}` },
      h(
        "h4",
        null,
        generation ? `Generation ${generation}` : "Original",
        isCurrent && h("span", { class: "badge" }, "shown"),
      ),
      h(
        "p",
        { class: "meta" },
        h("span", null, model || provider),
        h("code", { title: prompt }, version(prompt)),
        at && time(Date.parse(at), dayName(Date.parse(at)), inFull(Date.parse(at))),
      ),
      h(
        "ul",
        null,
        memories
          .map((row) => item(row))
          .map((other) =>
            h(
              "li",
              { class: other.name === memory.name ? "is-this" : "" },
              h(
                "p",
                null,
                mark(other.kind, other.type),
                h("span", { class: "hidden" }, `${label(other.kind, other.type)}: `),
                h("a", { href: address(other.name) }, prose(other.headline || "Untitled")),
              ),
              other.narrative && h("p", { class: "text" }, prose(other.narrative)),
            ),
          ),
      ),
    );
  return h(
    "section",
    null,
    h("h3", null, "Generations"),
    h("p", { class: "hint" }, "What different prompts and models made of the same events."),
    h(
      "div",
      { class: "generations", tabindex: 0, role: "group", "aria-label": "Generations, side by side" },
      all.map(column),
    ),
  );
}

/** For each file that is listed above: whether it is unchanged. */
function showFreshness(states) {
  for (const { file, state } of states) {
    const place = document.querySelector(`.files [data-file="${CSS.escape(file)}"]`);
    if (!place || !STATES[state]) continue;
    // Two responses for one memory may arrive: the last one counts.
    place.querySelector(".fresh")?.remove();
    place.append(h("span", { class: `fresh ${state}` }, state === "same" && icon("check"), STATES[state]));
  }
}
