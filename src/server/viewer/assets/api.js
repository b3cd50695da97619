// Requests to the worker. The key is kept in this origin's own storage, which other ports cannot read, and is sent
// as a header. A cookie would go to every server on this address, also to those of other users. The key ends with the
// worker; the next one gives a new key to a browser that it knows.
const KEY = "claude-mem-key";
// Seldom needed.
const browserKey = () => import("./browser_key.js");
let key = recall();

function recall() {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** Uses the key that another tab got. */
export function onKey(run) {
  addEventListener("storage", (event) => {
    if (event.key !== KEY || !event.newValue || event.newValue === key) return;
    key = event.newValue;
    run();
  });
}

/**
 * Exchanges the secret of a link, which is in the fragment, for a key. Returns the path after the secret, which is
 * the page to open; nothing if the link does not work and this browser had no access before.
 */
export async function enter() {
  const [link, ...rest] = location.hash.slice(1).split("/");
  history.replaceState(null, "", location.pathname);
  const known = await browserKey().then(({ introduce }) => introduce(), () => ({}));
  const isIn = (await logIn({ "x-claude-mem-link": link, ...known })) || (await hasAccess());
  return isIn ? inside(`/${rest.join("/")}`) : undefined;
}

const hasAccess = () => get("/api/processing").then(() => true, () => false);

/** Requests a key. Returns whether there is one. */
async function logIn(headers) {
  const answer = await fetch("/api/viewer/session", { method: "POST", headers, credentials: "omit" }).catch(() => {});
  if (!answer?.ok) return false;
  ({ key } = await answer.json());
  try {
    localStorage.setItem(KEY, key);
  } catch {
    // Without storage the key lasts until the page is closed.
  }
  return true;
}

let renewal;
/** Gets a key from a worker that was started after this browser became known. Requests share one attempt. */
function renew() {
  renewal ??= browserKey()
    .then(({ prove }) => prove())
    .then((headers) => headers && logIn(headers))
    .catch(() => false)
    .finally(() => (renewal = undefined));
  return renewal;
}

/** Sends a request with the key; with a new key if the worker does not accept this one. */
async function send(path, options) {
  const attempt = () =>
    fetch(path, {
      ...options,
      headers: { ...options.headers, ...(key && { authorization: `Bearer ${key}` }) },
      credentials: "omit",
    });
  const answer = await attempt();
  return answer.status === 401 && (await renew()) ? attempt() : answer;
}

/** The path, unless a browser would read it as the address of another server. */
function inside(path) {
  try {
    const { origin, pathname, search } = new URL(path, location.origin);
    return origin === location.origin ? pathname + search : "/";
  } catch {
    return "/";
  }
}

/** An error of a request, with a message for the user. */
class Refused extends Error {
  constructor(status, body) {
    super(body.message || `The worker responded with ${status}`);
    this.status = status;
    this.body = body;
    this.meaning = body.meaning;
    this.remedy = body.remedy;
    this.isLocked = status === 401;
    this.isGone = status === 0;
  }
}

const gone = {
  message: "The worker does not respond",
  meaning: "It exits when idle. No data is lost.",
  remedy: "Start it again with `claude-mem viewer`",
};

/** Throws the error of a request to a worker that cannot be reached. */
export function unreachable() {
  throw new Refused(0, gone);
}

/** Requests JSON. Empty values of `query` are left out. */
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
    answer = await send(path, { method, headers, body: body && JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    unreachable();
  }
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, content);
  return content;
}

/** Reads server-sent events from a response. `EventSource` cannot send the header with the key. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = { data: "", id: undefined };
      for (const line of block.split("\n")) {
        if (line.startsWith("data: ")) event.data += line.slice(6);
        if (line.startsWith("id: ")) event.id = line.slice(4);
      }
      if (event.data) yield event;
    }
  }
}

/**
 * Follows changes. Calls back with each change, and with whether the stream is open. Resolves when the worker has
 * sent the position of the stream, or cannot be reached.
 */
export function follow(changed, opened) {
  let line;
  let retry;
  let wait = 500;
  let last = "";
  let begun;
  const begin = new Promise((resolve) => (begun = resolve));
  async function open() {
    const mine = new AbortController();
    line = mine;
    try {
      // A reconnected stream resumes where it stopped.
      const answer = await send(`/stream${parameters({ lastEventId: last })}`, {
        headers: { accept: "text/event-stream" },
        signal: mine.signal,
        cache: "no-store",
      });
      if (!answer.ok) throw new Refused(answer.status, {});
      wait = 500;
      opened(true);
      for await (const { data, id } of events(answer.body)) {
        last = id ?? last;
        const change = JSON.parse(data);
        try {
          changed(change);
        } catch (error) {
          console.error("a change could not be shown", error);
        }
        if (change.type === "initial_load") begun();
      }
    } catch {
      // It is reopened below in any case.
    }
    if (mine.signal.aborted) return;
    opened(false);
    begun();
    retry = setTimeout(open, wait);
    wait = Math.min(wait * 2, 15_000);
  }
  open();
  // A closed page must not keep the worker running.
  addEventListener("pagehide", () => {
    clearTimeout(retry);
    line.abort();
  });
  addEventListener("pageshow", (event) => event.persisted && open());
  return begin;
}
