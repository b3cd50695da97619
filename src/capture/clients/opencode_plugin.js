// Written by `claude-mem install`; `claude-mem uninstall` removes it.
// Reports what happens in OpenCode to claude-mem and adds its memories to what the model is given.
// Events are not awaited, and `opencode run` exits right after the last one, so the program runs synchronously.
// Nothing here may throw: that would break the turn.
import { spawnSync } from "node:child_process"

const PROGRAM_PATH = PROGRAM

export const ClaudeMem = async ({ directory }) => {
  const parents = new Map() // sessions of subagents, and the session that started each
  const roles = new Map() // messages
  const started = new Map() // context of each session from its start
  const prompted = new Map() // context of each session's last prompt
  const answers = new Map() // last answer in each session's turn
  const running = new Set() // sessions whose turn has not ended

  const report = (event, session, fields) => {
    try {
      const parent = parents.get(session)
      const owner = parent ? { session_id: parent, agent_id: session } : { session_id: session }
      const payload = { ...owner, cwd: directory, hook_event_name: event, platform: "opencode", ...fields }
      const done = spawnSync(PROGRAM_PATH, ["hook", "--client", "opencode"], {
        input: JSON.stringify(payload),
        encoding: "utf8",
        timeout: 5000,
        maxBuffer: 4 << 20,
        windowsHide: true,
      })
      return JSON.parse(done.stdout || "{}").hookSpecificOutput?.additionalContext ?? ""
    } catch {
      return ""
    }
  }

  const start = (session, source) => {
    if (!started.has(session)) started.set(session, report("SessionStart", session, { source }))
  }

  const toolPart = (session, { tool, callID, state }) => {
    const common = {
      tool_name: tool,
      tool_input: state.input,
      tool_use_id: callID,
      duration_ms: state.time ? state.time.end - state.time.start : undefined,
    }
    if (state.status === "error") report("PostToolUseFailure", session, { ...common, error: String(state.error) })
    if (state.status === "completed") {
      const response = { output: state.output, metadata: { exit: state.metadata?.exit } }
      report("PostToolUse", session, { ...common, tool_response: response })
    }
  }

  const onEvent = ({ type, properties }) => {
    const session = properties.sessionID ?? properties.info?.id
    if (type === "session.created") {
      if (properties.info?.parentID) parents.set(session, properties.info.parentID)
      else start(session, "startup")
    } else if (type === "message.updated") {
      roles.set(properties.info.id, properties.info.role)
    } else if (type === "message.part.updated") {
      const { part } = properties
      const owner = part.sessionID ?? session
      const isAnswer = part.type === "text" && part.time?.end && roles.get(part.messageID) === "assistant"
      if (isAnswer) answers.set(owner, part.text)
      if (part.type === "tool") toolPart(owner, part)
      if (isAnswer || part.type === "tool") running.add(owner)
    } else if (type === "session.compacted") {
      started.set(session, report("SessionStart", session, { source: "compact" }))
    } else if (type === "session.idle") {
      // After an error of the model's API it comes twice.
      if (!running.delete(session)) return
      const last_assistant_message = answers.get(session) ?? ""
      answers.delete(session)
      report(parents.has(session) ? "SubagentStop" : "Stop", session, { last_assistant_message })
    } else if (type === "session.deleted") {
      report("SessionEnd", session, { reason: "deleted" })
    }
  }

  return {
    event: async ({ event }) => {
      try {
        onEvent(event)
      } catch {}
    },
    "chat.message": async ({ sessionID }, { message, parts }) => {
      try {
        running.add(sessionID)
        if (parents.has(sessionID)) return
        start(sessionID, "resume")
        const texts = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
        const fields = { prompt: texts.join("\n"), prompt_id: message.id }
        prompted.set(sessionID, report("UserPromptSubmit", sessionID, fields))
      } catch {}
    },
    // Before each request of the main loop. What is added here is not stored with the session.
    "experimental.chat.messages.transform": async (_, { messages }) => {
      try {
        const users = messages.filter(({ info }) => info.role === "user")
        const add = (message, text) => {
          if (!message || !text) return
          const { id, sessionID } = message.info
          message.parts.unshift({ type: "text", text, synthetic: true, id: "prt_0", messageID: id, sessionID })
        }
        const last = users.at(-1)
        add(last, prompted.get(last?.info.sessionID))
        add(users[0], started.get(users[0]?.info.sessionID))
      } catch {}
    },
  }
}
