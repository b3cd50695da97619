// A session turn by turn: prompts, tool uses, observations and summaries.
import { get } from "./api.js";
import { calm, fill, h, prose, time } from "./dom.js";
import { count, cut, dayName, duration, hour, inFull, many, money, nextSteps, tail } from "./format.js";
import { icon, mark } from "./icons.js";
import { sessionMarkdown } from "./markdown.js";
import { address, isSame, item, label } from "./rows.js";
import { copyButton } from "./selection.js";
import { copyText } from "./toast.js";

export default async function page(main, { wanted }) {
  const id = decodeURIComponent(wanted);
  const body = h("div");
  main.append(body);
  let session;
  let story;
  const copy = () => copyText(sessionMarkdown(story), "Session copied as Markdown");

  async function draw() {
    story = await get(`/api/session/${encodeURIComponent(id)}`);
    session = story.session;
    fill(
      body,
      head(story, copy, () => download(story)),
      h(
        "ol",
        { class: "turns" },
        story.turns.map((turn, at) => chapter(turn, at === story.turns.length - 1)),
      ),
      !story.turns.length && h("p", { class: "hint" }, "No prompts yet."),
    );
  }

  await draw();
  const named = location.hash && body.querySelector(`[id="${CSS.escape(location.hash.slice(1))}"]`);
  if (named) {
    named.classList.add("is-fresh");
    requestAnimationFrame(() => named.scrollIntoView({ block: "center" }));
  }
  const renew = calm(300, () => draw().catch(() => {}));
  const isMine = (change) => {
    const of = change.prompt ?? change.observation ?? change.summary ?? change.session ?? change;
    return of.content_session_id === session.content_session_id || change.type === "forgotten";
  };
  return {
    title: session.title ?? "Session",
    changed: (change) => isMine(change) && renew(),
    returned: renew,
    keys: { y: copy },
    up: "/s",
  };
}

/** Saves the session as a file. */
function download(story) {
  const { project, content_session_id: id } = story.session;
  const url = URL.createObjectURL(new Blob([sessionMarkdown(story)], { type: "text/markdown" }));
  const name = `${project}-${id.slice(0, 8)}.md`.replace(/[^\w.-]+/g, "-");
  const link = h("a", { href: url, download: name });
  link.click();
  URL.revokeObjectURL(url);
}

function head({ session, cost_usd: cost }, copy, save) {
  const { started_at_epoch: from, last_at_epoch: to } = session;
  const isOpen = session.status === "active" || session.status === "initialized";
  const fact = (name, ...value) => h("div", null, h("dt", null, name), h("dd", null, value));
  return h(
    "header",
    { class: "head story-head" },
    h(
      "p",
      { class: "crumbs" },
      h("a", { href: "/s" }, "Sessions"),
      icon("next"),
      h("a", { href: `/s?project=${encodeURIComponent(session.project)}` }, session.project),
    ),
    h("h1", null, cut(session.title, 140) || "A session without a prompt"),
    h(
      "dl",
      { class: "facts" },
      fact("When", time(from, `${dayName(from)}, ${hour(from)}`, inFull(from))),
      fact(
        isOpen ? "So far" : "Took",
        isOpen && h("span", { class: "dot on" }),
        duration(Math.max(0, to - from)),
      ),
      session.branch && fact("Branch", h("code", null, cut(session.branch, 60))),
      fact("Prompts", count(session.prompts)),
      fact("Tools", count(session.tool_uses)),
      fact("Observations", count(session.observations)),
      cost > 0 && fact("Spent", money(cost)),
      fact("Session", h("code", { title: session.content_session_id }, session.content_session_id.slice(0, 8))),
    ),
    h(
      "p",
      { class: "actions" },
      copyButton(copy),
      h("button", { type: "button", class: "button", on: { click: save } }, icon("download"), "Download"),
      session.platform_source === "claude-code" && resume(session),
      h(
        "a",
        { class: "button", href: `/events?session=${encodeURIComponent(session.content_session_id)}` },
        icon("events"),
        "Events",
      ),
    ),
  );
}

/** Copies the command that continues it. */
function resume({ cwd, content_session_id: id }) {
  const quoted = cwd && `'${cwd.replaceAll("'", "'\\''")}'`;
  const command = `${quoted ? `cd ${quoted} && ` : ""}claude --resume ${id}`;
  return h(
    "button",
    { type: "button", class: "button", title: command, on: { click: () => copyText(command, "Command copied") } },
    icon("copy"),
    "Copy resume command",
  );
}

function chapter(turn, isLast) {
  const { prompt, summary } = turn;
  return h(
    "li",
    { class: "turn" },
    h(
      "div",
      { class: "asked", id: prompt && `P${prompt.id}` },
      mark("prompt"),
      h(
        "div",
        null,
        h(
          "p",
          { class: "label" },
          turn.prompt_number ? `Prompt ${turn.prompt_number}` : "Before the first prompt",
          prompt &&
            time(prompt.created_at_epoch, hour(prompt.created_at_epoch), inFull(prompt.created_at_epoch)),
        ),
        prompt && h("blockquote", { class: "prompt-text" }, prompt.prompt_text || "(private)"),
      ),
    ),
    turn.tools.length > 0 &&
      h(
        "p",
        { class: "tools" },
        turn.tools.map(({ tool, count: times }) =>
          h("span", { class: "tool" }, tool, times > 1 && h("b", null, ` ×${count(times)}`)),
        ),
      ),
    turn.observations.length > 0 &&
      h(
        "section",
        null,
        h("h2", null, "Done"),
        h(
          "ul",
          { class: "observation-rows" },
          turn.observations.map((row) => observationRow(item(row, "observation"))),
        ),
      ),
    summary
      ? outcome(summary, isLast)
      : turn.observations.length === 0 &&
          turn.tools.length > 0 &&
          h("p", { class: "hint" }, `${many(sum(turn.tools), "tool use")}, not distilled yet.`),
  );
}

const sum = (tools) => tools.reduce((all, { count: times }) => all + times, 0);

function observationRow(memory) {
  const files = [...new Set([...memory.files_modified, ...memory.files_read])];
  return h(
    "li",
    { class: "observation-row", id: memory.name },
    mark("observation", memory.type),
    h(
      "div",
      null,
      h("span", { class: "hidden" }, `${label("observation", memory.type)}: `),
      h(
        "a",
        { class: "headline", href: address(memory.name), data: { row: memory.name } },
        prose(memory.title || "Untitled"),
      ),
      [memory.narrative, memory.subtitle]
        .filter((text) => text && !isSame(text, memory.title))
        .slice(0, 1)
        .map((text) => h("p", null, prose(text))),
      memory.facts.length > 0 &&
        h(
          "ul",
          { class: "points" },
          memory.facts.map((fact) => h("li", null, prose(fact))),
        ),
      files.length > 0 &&
        h(
          "p",
          { class: "meta" },
          files
            .slice(0, 4)
            .map((file) =>
              h(
                "a",
                { href: `/?file=${encodeURIComponent(file)}`, title: file },
                h("code", null, tail(file)),
              ),
            ),
          files.length > 4 && h("span", null, `${files.length - 4} more`),
        ),
    ),
  );
}

function outcome(summary, isLast) {
  const part = (title, text, style) =>
    text && h("section", { class: style }, h("h2", null, title), h("p", { class: "prose" }, prose(text)));
  return h(
    "div",
    { class: "outcome", id: `S${summary.id}` },
    part("Result", summary.completed),
    part("Learned", summary.learned, "learned"),
    (summary.investigated || summary.notes) &&
      h(
        "details",
        { class: "raw" },
        h("summary", null, "Investigated, and notes"),
        part("Investigated", summary.investigated),
        part("Notes", summary.notes),
      ),
    part(isLast ? "Next" : "Planned next", nextSteps(summary.next_steps), "next"),
    h(
      "p",
      { class: "meta" },
      h("a", { href: address(`S${summary.id}`), data: { row: `S${summary.id}` } }, `Summary S${summary.id}`),
    ),
  );
}
