// The feed grows while hooks run: without a reload.
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
  // One turn: the prompt once, as its heading, and the summary at its end.
  const kinds = await page.locator(".turn-group").first().locator(".row").evaluateAll((all) => all.map((row) => row.className));
  assert.match(kinds[0], /kind-prompt/);
  assert.match(kinds[3], /kind-summary/);
  const text = await page.locator("main").innerText();
  assert.equal(text.split(turn.prompt.split("\n")[0].slice(0, 40)).length - 1, 1, text);
  await sees(page.locator("#live"), "Live");
  assert.equal(await page.evaluate(() => window.isTheSamePage), true);

  // The log shows what happens, too.
  await page.getByRole("navigation").getByRole("link", { name: "Events" }).click();
  const events = page.locator(".events li");
  await sees(events, "cargo test -p ledger invoice");
  session.tool({ tool: "Bash", input: { command: "ls invoices" }, output: { stdout: "march" } });
  await sees(events.first(), "ls invoices");
  await events.first().locator("summary").click();
  await sees(events.first().locator(".terminal"), "march");
  await page.getByLabel("Kind").selectOption("PromptSubmitted");
  await counts(events, 1);
  await shot(page, "events");
  await page.getByRole("navigation").getByRole("link", { name: "Feed" }).click();
  await sees(rows, turn.prompt);

  // A filter also applies to later events.
  await page.getByRole("link", { name: "Prompts" }).click();
  await counts(rows, 1);
  session.turn(ledger.turns[1]);
  await sees(rows, ledger.turns[1].prompt);
  await counts(rows, 2);
});
