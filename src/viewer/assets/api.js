// The worker, asked. The browser holds the key in a cookie that no script can read.

/** What went wrong, in words for a person. */
export class Refused extends Error {
  constructor(status, body) {
    super(body.message || `The worker answered ${status}`);
    this.status = status;
    this.body = body;
    this.meaning = body.meaning;
    this.remedy = body.remedy;
    this.isLocked = status === 401;
    this.isGone = status === 0;
  }
}

const gone = {
  message: "The worker does not answer",
  meaning: "It ends by itself when there is nothing to do. Nothing is lost by that.",
  remedy: "Start it again with `claude-mem viewer`",
};

/** Asks for JSON. `query` leaves out what is empty. */
export function get(path, query, signal) {
  return ask("GET", path + parameters(query), undefined, signal);
}

export const post = (path, body = {}) => ask("POST", path, body);
export const remove = (path) => ask("DELETE", path);

function parameters(query) {
  const wanted = Object.entries(query ?? {}).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  return wanted.length ? `?${new URLSearchParams(wanted)}` : "";
}

async function ask(method, path, body, signal) {
  const headers = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers,
      body: body && JSON.stringify(body),
      signal,
      credentials: "same-origin",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, gone);
  }
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, said);
  return said;
}

/**
 * Follows what happens. Calls back with each change, and with whether the line is open. Resolves when the worker has
 * said from where on it tells everything, or cannot.
 */
export function follow(changed, opened) {
  let stream;
  let wait = 500;
  let last = "";
  let begun;
  const begin = new Promise((resolve) => (begun = resolve));
  function open() {
    // A line that was cut goes on where it was, also where it is not the browser that opens it again.
    stream = new EventSource(`/stream${parameters({ lastEventId: last })}`);
    stream.onopen = () => {
      wait = 500;
      opened(true);
    };
    stream.onmessage = (message) => {
      last = message.lastEventId;
      try {
        const change = JSON.parse(message.data);
        changed(change);
        if (change.type === "initial_load") begun();
      } catch (error) {
        console.error("a change could not be shown", error);
      }
    };
    stream.onerror = () => {
      opened(false);
      begun();
      // The browser tries again by itself, unless it was refused.
      if (stream.readyState !== EventSource.CLOSED) return;
      setTimeout(open, wait);
      wait = Math.min(wait * 2, 15_000);
    };
  }
  open();
  // A page that is left must not keep the worker awake.
  addEventListener("pagehide", () => stream.close());
  addEventListener("pageshow", (event) => event.persisted && open());
  return begin;
}
