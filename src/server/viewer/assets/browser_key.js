// The key pair of this browser. No script can read the private key, so a page of another user at this address cannot
// copy it. With it, the browser gets a new key from the next worker. Without secure storage there is none, and the
// viewer is locked after a restart.
const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");

const answer = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

async function keys(mode) {
  const opening = indexedDB.open("claude-mem");
  opening.onupgradeneeded = () => opening.result.createObjectStore("keys");
  return (await answer(opening)).transaction("keys", mode).objectStore("keys");
}

const find = async () => answer((await keys("readonly")).get("browser"));

async function make() {
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]);
  await answer((await keys("readwrite")).put(pair, "browser"));
  return pair;
}

const shown = async ({ publicKey }) => ({ "x-claude-mem-browser": hex(await crypto.subtle.exportKey("raw", publicKey)) });

/** The headers that make this browser known. */
export async function introduce() {
  try {
    return await shown((await find()) ?? (await make()));
  } catch {
    return {};
  }
}

/** The headers that prove that this browser is known; nothing if it never was. */
export async function prove() {
  try {
    const pair = await find();
    if (!pair) return undefined;
    const { challenge } = await (await fetch("/api/viewer/session", { credentials: "omit" })).json();
    const algorithm = { name: "ECDSA", hash: "SHA-256" };
    const signature = await crypto.subtle.sign(algorithm, pair.privateKey, new TextEncoder().encode(challenge));
    return { ...(await shown(pair)), "x-claude-mem-signature": hex(signature) };
  } catch {
    return undefined;
  }
}
