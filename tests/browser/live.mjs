// The feed grows while hooks run: nobody reloads anything.
import { Session, assert, counts, open, scene, sees, shot } from "./stage.mjs";

await open(async ({ page }) => {
  await sees(page.locator("main"), "No memories yet");
  await sees(page.locator("#live"), "Live");
  await shot(page, "empty");
  await page.evaluate(() => (window.isTheSamePage = true));

  const [ledger] = scene;
  const [turn] = ledger.turns;
  const session = new Session(ledger);
  session.prompt(turn.prompt);
  const rows = page.locator(".row");
  await sees(rows, turn.prompt);
  await sees(page.locator(".projects"), "ledger");

  for (const tool of turn.tools) session.tool(tool);
  const now = page.locator(".now li");
  await sees(now, "Edit ×2");
  await sees(now, "Grep");
  await shot(page, "at-work");

  session.stop(turn.last);
  await sees(page.locator(".row.is-bugfix"), "Invoice totals were rounded twice");
  await sees(page.locator(".row.is-decision"), "Amounts are rounded half to even");
  await sees(page.locator(".row.is-summary"), "Correct the stored totals of March");
  await counts(rows, 4);
  await counts(now, 0);
  await sees(page.locator("#live"), "Live");
  assert.equal(await page.evaluate(() => window.isTheSamePage), true);

  // A filter holds for what happens later, too.
  await page.getByRole("link", { name: "Prompts" }).click();
  await counts(rows, 1);
  session.turn(ledger.turns[1]);
  await sees(rows, ledger.turns[1].prompt);
  await counts(rows, 2);
});
