// Access: only the browser of the user, through a private file, and no other port.
import { createServer } from "node:http";
import { readFileSync, statSync, writeFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { assert, open, run, sees, shot } from "./stage.mjs";

const { HOME } = process.env;
const file = join(HOME, ".claude-mem/viewer.html");

await open(async (stage) => {
  const { page, context, origin, link } = stage;
  await sees(page.locator("#live"), "Live");
  assert.equal(new URL(page.url()).hash, "", "the secret of the link is not left in the address");
  assert.deepEqual(await context.cookies(), [], "there is no cookie");

  // Another user's server on another port of this address is sent nothing that opens the door here.
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

  // From there, nothing here can be read or changed.
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

  // `claude-mem viewer` hands the browser a file, not the link. The browser in this test only notes what it got.
  const note = join(HOME, "argv.txt");
  const browser = join(HOME, "browser.sh");
  writeFileSync(browser, `#!/bin/sh\nprintf '%s\\n' "$@" > ${note}.draft && mv ${note}.draft ${note}\n`, { mode: 0o755 });
  run(["viewer"], "", { BROWSER: browser });
  while (!existsSync(note)) await page.waitForTimeout(10);
  assert.deepEqual(readFileSync(note, "utf8").trim().split("\n"), [file], "the arguments of the browser");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.ok(readFileSync(file, "utf8").includes(`${origin}/open#`));

  // A browser without a key gets access through that file, which is deleted afterwards.
  await page.goto(origin);
  await page.evaluate(() => localStorage.clear());
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

  // A link can name a page; nothing outside this origin.
  const chosen = run(["viewer", "--print", "stats"]).trim();
  assert.ok(chosen.endsWith("/stats"), chosen);
  await second.goto(chosen);
  await second.waitForURL(`${origin}/stats`);
  await sees(second.locator("h1"), "Stats");
  await second.goto(`${run(["viewer", "--print"]).trim()}//127.0.0.1:1/`);
  await second.waitForURL(`${origin}/`);

  // Under another name of this machine a server of another user could share the page's storage.
  const fresh = run(["viewer", "--print"]).trim();
  await second.goto(fresh.replace("127.0.0.1", "localhost"));
  await sees(second.locator("main"), "This link has expired");
  assert.notEqual(fresh, link);
  stage.troubles.splice(0); // Requests to the other server, and refusals that were to be expected.
});
