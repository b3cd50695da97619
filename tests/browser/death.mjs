// The worker is killed: the page shows it, nothing is missing afterwards, and the next worker accepts only browsers
// that it knows.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Session, assert, counts, open, run, scene, sees, shot } from "./stage.mjs";

await open(async (stage) => {
  const { page } = stage;
  const [turn] = scene[2].turns;
  const session = new Session(scene[2]);
  session.turn(turn);
  const rows = page.locator(".row");
  await counts(rows, 3);

  const presence = () => JSON.parse(readFileSync(join(process.env.HOME, ".claude-mem/worker.json")));
  const { pid, port } = presence();
  process.kill(pid, "SIGKILL");
  await sees(page.locator("#live"), "Worker is not running");
  await page.getByRole("link", { name: "Stats" }).click();
  await sees(page.locator("h1"), "The worker does not respond");
  await shot(page, "away");
  session.prompt("sent without a worker");

  run(["settings", "set", "PROVIDER", "extract"]);
  run(["settings", "set", "WORKER_PORT", String(port)]);
  run(["worker", "start"]);
  assert.notEqual(presence().pid, pid);
  assert.equal(presence().port, port);
  // The new worker knows this browser: the page continues by itself, and so does a bookmark.
  await sees(page.locator("#live"), "Live");
  await sees(page.locator("h1"), "Stats");
  await stage.go("/m/P1");
  await sees(page.locator("h1"), "Prompt");

  // Locking all browsers ends that.
  await stage.go("/stats");
  await sees(page.locator("h1"), "Stats");
  const link = run(["viewer", "--print", "--reset"]).trim();
  assert.equal(new URL(link).port, String(port));
  await sees(page.locator("#live"), "Locked");

  // The command names the requested page, and the tab continues there once another tab has access.
  await sees(page.locator(".command"), "claude-mem viewer stats");
  await shot(page, "locked");
  const other = await stage.context.newPage();
  await other.goto(`${link}/m/P1`);
  await sees(other.locator("h1"), "Prompt");
  assert.equal(new URL(other.url()).pathname, "/m/P1");
  await sees(page.locator("h1"), "Stats");
  await other.close();
  await page.getByRole("navigation").getByRole("link", { name: "Feed" }).click();
  await sees(rows, "sent without a worker");
  await counts(rows, 4);
  await sees(page.locator("#live"), "Live");

  // Every page names a failing provider, and the command that helps.
  run(["settings", "set", "ANTHROPIC_API_KEY", ""]);
  run(["settings", "set", "PROVIDER", "anthropic"]);
  session.turn(turn);
  const banner = page.locator("#banner");
  await sees(banner, "claude-mem settings set");
  await sees(page.locator("#live"), "Provider fails");
  await shot(page, "banner");
  await banner.getByRole("button", { name: "Copy" }).click();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^claude-mem settings set /);
  // Another provider needs no reload.
  run(["settings", "set", "PROVIDER", "extract"]);
  await banner.waitFor({ state: "hidden" });
  await sees(page.locator("#live"), "Live");
  // The rules repeat the request. In its turn, it is left out, because the prompt is above.
  await sees(rows, "Builds went from nine minutes to three");
  assert.doesNotMatch(await page.locator("main").innerText(), /Asked:/);
  await stage.go("/nowhere");
  await sees(page.locator("main"), "Page not found");
  await shot(page, "not-found");
  await page.getByRole("link", { name: "Go to the feed" }).click();
  await sees(rows, "sent without a worker");
  stage.troubles.splice(0); // Errors of the browser while there was no worker, and when it was rejected.
});
