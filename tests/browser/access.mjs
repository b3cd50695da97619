// Access: only the browser of the user, through a private file, and no other port.
import { createServer } from "node:http";
import { readFileSync, statSync, writeFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { assert, forgetBrowser, open, run, sees, shot } from "./stage.mjs";

const { HOME } = process.env;
const file = join(HOME, ".claude-mem/viewer.html");
const presence = () => JSON.parse(readFileSync(join(HOME, ".claude-mem/worker.json")));

await open(async (stage) => {
  const { page, context, origin, link } = stage;
  await sees(page.locator("#live"), "Live");
  assert.equal(new URL(page.url()).hash, "", "the secret of the link is not left in the address");
  assert.deepEqual(await context.cookies(), [], "there is no cookie");

  // Another user's server on another port of this address gets nothing that gives access here.
  const received = [];
  const spy = createServer((request, response) => {
    received.push(`${request.url} ${JSON.stringify(request.headers)}`);
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>dev server</title>");
  });
  await new Promise((resolve) => spy.listen(0, "127.0.0.1", resolve));
  const other = `http://127.0.0.1:${spy.address().port}/`;
  const key = await page.evaluate(() => localStorage.getItem("claude-mem-key"));
  assert.match(key, /^[0-9a-f]{64}$/);
  await page.goto(other);
  const stored = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie]));
  assert.ok(received.length > 0, "the browser was there");
  for (const text of [...received, stored]) assert.ok(!text.includes(key), text);

  // A page of that server can neither read nor change anything here.
  const reached = await page.evaluate(
    async ([target, shown]) => {
      const attempt = (options) => fetch(`${target}/api/stats`, options).then((a) => a.status, () => "refused");
      return [
        await attempt({ credentials: "include" }),
        await attempt({ headers: { authorization: `Bearer ${shown}` } }),
        await attempt({ mode: "no-cors", credentials: "include" }),
      ];
    },
    [origin, key],
  );
  assert.deepEqual(reached, ["refused", "refused", "refused"]);
  spy.close();

  // `claude-mem viewer` passes the browser a file, not the link. The browser in this test only records its arguments.
  const note = join(HOME, "argv.txt");
  const browser = join(HOME, "browser.sh");
  writeFileSync(browser, `#!/bin/sh\nprintf '%s\\n' "$@" > ${note}.draft && mv ${note}.draft ${note}\n`, { mode: 0o755 });
  run(["viewer"], "", { BROWSER: browser });
  while (!existsSync(note)) await page.waitForTimeout(10);
  assert.deepEqual(readFileSync(note, "utf8").trim().split("\n"), [file], "the arguments of the browser");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.ok(readFileSync(file, "utf8").includes(`${origin}/open#`));

  // A key that is no longer valid is renewed by the browser's signature. The private key cannot be read.
  await page.goto(origin);
  await page.evaluate(() => localStorage.setItem("claude-mem-key", "of an older worker"));
  await page.reload();
  await sees(page.locator("#live"), "Live");
  const renewed = await page.evaluate(() => localStorage.getItem("claude-mem-key"));
  assert.match(renewed, /^[0-9a-f]{64}$/);
  assert.notEqual(renewed, key);
  const { isReadable, isForged } = await page.evaluate(async () => {
    const answer = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
    const keys = async () => (await answer(indexedDB.open("claude-mem"))).transaction("keys", "readwrite").objectStore("keys");
    const pair = await answer((await keys()).get("browser"));
    const readings = ["pkcs8", "jwk"].map((form) => crypto.subtle.exportKey(form, pair.privateKey));
    const isReadable = (await Promise.allSettled(readings)).some(({ status }) => status === "fulfilled");
    // Another private key with the same public key is not enough.
    const other = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]);
    await answer((await keys()).put({ ...other, publicKey: pair.publicKey }, "browser"));
    const { prove } = await import("/assets/browser_key.js");
    const headers = await prove();
    const forged = await fetch("/api/viewer/session", { method: "POST", headers });
    localStorage.clear();
    return { isReadable, isForged: Boolean(headers["x-claude-mem-signature"]) && forged.status !== 403 };
  });
  assert.deepEqual({ isReadable, isForged }, { isReadable: false, isForged: false });
  await page.reload();
  await sees(page.locator("#live"), "Locked");
  await forgetBrowser(stage);

  // A browser without a key gets access through that file, which is deleted afterwards.
  await page.goto(`file://${file}`);
  await sees(page.locator("#live"), "Live");
  assert.equal(page.url(), `${origin}/`);
  assert.ok(!existsSync(file), "a link that was used is not kept");

  // Another tab of the same browser needs no link.
  const second = await context.newPage();
  await second.goto(`${origin}/settings`);
  await sees(second.locator("#live"), "Live");
  await sees(second.locator("main"), "claude-mem settings set CLAUDE_MEM_SHIP_TO VALUE");
  await shot(second, "settings-protected", true);

  // A link can name a page, but no page outside this origin.
  const chosen = run(["viewer", "--print", "stats"]).trim();
  assert.ok(chosen.endsWith("/stats"), chosen);
  await second.goto(chosen);
  await second.waitForURL(`${origin}/stats`);
  await sees(second.locator("h1"), "Stats");
  // A link works once, but this browser no longer needs it.
  await second.goto(`${origin}/settings`);
  await second.goto(chosen);
  await second.waitForURL(`${origin}/stats`);
  await second.goto(`${run(["viewer", "--print"]).trim()}//127.0.0.1:1/`);
  await second.waitForURL(`${origin}/`);

  // Under another name of this machine a server of another user could share the page's storage.
  const fresh = run(["viewer", "--print"]).trim();
  await second.goto(fresh.replace("127.0.0.1", "localhost"));
  await sees(second.locator("main"), "This link has expired");
  assert.notEqual(fresh, link);

  // While no worker runs, another user takes its port. Their page can sign, but no worker accepts the signature.
  await stage.go("/");
  await sees(page.locator("#live"), "Live");
  const { port } = presence();
  run(["settings", "set", "WORKER_PORT", String(port)]);
  run(["worker", "stop"]);
  const squatter = createServer((request, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>not the viewer</title>");
  });
  await new Promise((resolve) => squatter.listen(port, "127.0.0.1", resolve));
  run(["worker", "start"]);
  assert.notEqual(presence().port, port);
  const worker = `http://127.0.0.1:${presence().port}`;
  const { challenge } = await (await fetch(`${worker}/api/viewer/session`)).json();
  await stage.go("/stats");
  assert.equal(await page.title(), "not the viewer");
  const stolen = await page.evaluate(async (text) => {
    const answer = (request) => new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
    const opened = await answer(indexedDB.open("claude-mem"));
    const pair = await answer(opened.transaction("keys").objectStore("keys").get("browser"));
    const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
    const bytes = new TextEncoder().encode(text);
    const signature = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, pair.privateKey, bytes);
    const browser = await crypto.subtle.exportKey("raw", pair.publicKey);
    return { key: localStorage.getItem("claude-mem-key"), browser: hex(browser), signature: hex(signature) };
  }, challenge);
  const signed = { "x-claude-mem-browser": stolen.browser, "x-claude-mem-signature": stolen.signature };
  const attempts = [
    fetch(`${worker}/api/stats`, { headers: { authorization: `Bearer ${stolen.key}` } }),
    fetch(`${worker}/api/viewer/session`, { method: "POST", headers: signed }),
  ];
  assert.deepEqual((await Promise.all(attempts)).map(({ status }) => status), [401, 403]);
  squatter.close();
  stage.troubles.splice(0); // Requests to the other server, and refusals that were to be expected.
});
