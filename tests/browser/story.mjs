// A session turn by turn, and a memory with its sources.
import { assert, counts, distilled, open, scene, sees, shot, tell } from "./stage.mjs";

await open(async (stage) => {
  const { page } = stage;
  const [ledger] = scene;
  const [session] = tell([ledger]);
  await distilled(stage, 4);

  await page.getByRole("link", { name: "Sessions" }).click();
  await page.locator(".card", { hasText: "The totals on invoice 4711" }).getByRole("link").first().click();
  const turns = page.locator(".turn");
  await counts(turns, 2);
  const first = turns.nth(0);
  await sees(first.locator("blockquote"), ledger.turns[0].prompt);
  await sees(first.locator(".tools"), "Read ×2");
  await sees(first, "Result");
  await sees(first.locator(".observation-row"), "Invoice totals were rounded twice");
  await sees(first.locator(".learned"), "Both the line and the total were rounded");
  await sees(turns.nth(1).locator(".next"), "Run it on Tuesday");
  await shot(page, "story", true);

  // The whole session as Markdown, with its prompts.
  await page.keyboard.press("y");
  await sees(page.locator(".toast"), "Session copied");
  const whole = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(whole.includes(`> ${ledger.turns[0].prompt.split("\n")[0]}`), whole);
  assert.match(whole, /\*\*Next:\*\* Run it on Tuesday/);
  const [saved] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download" }).click(),
  ]);
  assert.match(saved.suggestedFilename(), /^ledger-.*\.md$/);

  // The page of a session is updated while it is open.
  session.prompt("and the same for credit notes");
  await counts(turns, 3);
  await sees(turns.nth(2).locator("blockquote"), "and the same for credit notes");

  await page.getByRole("link", { name: "Invoice totals were rounded twice" }).click();
  await sees(page.locator("h1"), "Invoice totals were rounded twice");
  const from = page.locator(".provenance");
  await sees(from.locator(".path"), "claude-haiku-4-5");
  await sees(from.locator(".path"), "through anthropic");
  await sees(from.locator(".path"), "4,812 → 611 tokens");
  await sees(from.locator(".path"), "one of 3");
  await sees(from.locator(".path"), "$0.00");
  // Each event names its command or file; a command is shown as a terminal, an edit as a diff.
  const bash = from.locator(".sources li", { hasText: "cargo test -p ledger invoice" });
  await bash.locator("summary").click();
  await sees(bash.locator(".terminal"), "$ cargo test -p ledger invoice");
  await sees(bash.locator(".terminal"), "41 passed; 0 failed");
  const edit = from.locator(".sources li", { hasText: "Edit" }).filter({ hasText: "src/money.rs" });
  await edit.locator("summary").click();
  await sees(edit.locator(".diff .old"), "− round_half_up");
  await sees(edit.locator(".diff .new"), "+ round_half_even");
  await from.locator(".raw", { hasText: "characters, unchanged" }).locator("summary").click();
  await sees(from.locator("pre"), "<title>Invoice totals were rounded twice");
  const file = (name) => page.locator(".files li", { hasText: name });
  await sees(file("src/invoice.rs"), "unchanged since");
  await sees(file("src/tax.rs"), "no longer there");
  await shot(page, "memory", true);

  await page.getByRole("button", { name: "Copy as Markdown" }).click();
  await sees(page.locator(".toast"), "Copied");
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(
    copied,
    /^# Invoice totals were rounded twice, per line and in all\n\nRounding now happens once/,
  );
  assert.match(copied, /\n- A hundred lines of 0\.005 add up to 0\.50\n/);

  // The page marks a file that was changed later.
  session.touch("src/invoice.rs", 3600);
  await page.reload();
  await sees(file("src/invoice.rs"), "changed since");
  await sees(file("src/money.rs"), "unchanged since");

  await page.locator(".crumbs").getByRole("link", { name: "ledger" }).click();
  await sees(page.locator(".row"), "118 of 20,431");

  // The overview of the project.
  await page.getByRole("navigation").getByRole("link", { name: "Overview" }).click();
  await sees(page.locator(".ends"), "Run it on Tuesday");
  await sees(page.locator(".brief-list"), "Amounts are rounded half to even");
  await sees(page.locator(".file-list"), "src/invoice.rs");
  await page.getByRole("navigation").getByRole("link", { name: "Decisions" }).click();
  await counts(page.locator(".row"), 1);
});
