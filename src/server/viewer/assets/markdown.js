// Memories and sessions as Markdown, for a note, an issue or a message.

const list = (items) => items.map((text) => `- ${text}`).join("\n");
const part = (heading, text) => text && `## ${heading}\n\n${text}`;

/** The whole memory. */
export function markdown(memory) {
  const from = `*${[memory.project, new Date(memory.at).toISOString().slice(0, 16).replace("T", " "), `claude-mem ${memory.name}`].filter(Boolean).join(" · ")}*`;
  const files = [
    ...new Set([
      ...(memory.files_modified ?? []),
      ...(memory.files_edited ?? []),
      ...(memory.files_read ?? []),
    ]),
  ];
  const parts = {
    observation: () => [
      `# ${memory.title ?? "Memory"}`,
      memory.subtitle,
      memory.narrative,
      memory.facts.length > 0 && list(memory.facts),
    ],
    summary: () => [
      `# ${memory.request ?? "Summary"}`,
      part("Investigated", memory.investigated),
      part("Learned", memory.learned),
      part("Completed", memory.completed),
      part("Next steps", memory.next_steps),
      part("Notes", memory.notes),
    ],
    prompt: () => [
      (memory.prompt_text ?? "")
        .split("\n")
        .map((line) => `> ${line}`)
        .join("\n"),
    ],
  }[memory.kind]();
  return `${[...parts, files.length > 0 && part("Files", list(files.map((file) => `\`${file}\``))), from].filter(Boolean).join("\n\n")}\n`;
}

const quoted = (text) =>
  (text || "(private)")
    .split("\n")
    .map((line) => `> ${line}`)
    .join("\n");

/** A whole session: every prompt, with what was learned and done. */
export function sessionMarkdown({ session, turns }) {
  const day = new Date(session.started_at_epoch).toISOString().slice(0, 16).replace("T", " ");
  const about = [session.project, session.branch, day, `session ${session.content_session_id}`];
  const turn = ({ prompt_number: number, prompt, observations, summary }) => [
    `## ${number ? `Prompt ${number}` : "Before the first prompt"}`,
    prompt && quoted(prompt.prompt_text),
    observations.length > 0 &&
      observations
        .map(({ title, narrative, facts }) =>
          [`- **${title ?? "Untitled"}**${narrative && narrative !== title ? ` ${narrative}` : ""}`, ...facts.map((fact) => `  - ${fact}`)].join("\n"),
        )
        .join("\n"),
    summary?.completed && `**Result:** ${summary.completed}`,
    summary?.learned && `**Learned:** ${summary.learned}`,
    summary?.next_steps && `**Next:** ${summary.next_steps}`,
  ];
  const parts = [`# ${session.title ?? "Session"}`, `*${about.filter(Boolean).join(" · ")}*`, ...turns.flatMap(turn)];
  return `${parts.filter(Boolean).join("\n\n")}\n`;
}
