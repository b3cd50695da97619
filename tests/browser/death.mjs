// The worker is killed under the page: the page says so, nothing is missing afterwards, and the next worker lets
// in only whom it knows.
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
  await shot(page, "away");
  session.prompt("said while nobody was there");

  run(["settings", "set", "PROVIDER", "extract"]);
  run(["settings", "set", "WORKER_PORT", String(port)]);
  const link = run(["viewer", "--print"]).trim();
  assert.notEqual(presence().pid, pid);
  assert.equal(new URL(link).port, String(port));
  await sees(page.locator("#live"), "Locked");

  await page.goto(stage.origin + link.slice(new URL(link).origin.length));
  await sees(rows, "said while nobody was there");
  await counts(rows, 4);
  await sees(page.locator("#live"), "Live");
  stage.troubles.splice(0); // What the browser said while nobody answered, and when it was not let in.
});
