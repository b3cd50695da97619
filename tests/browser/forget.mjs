// A memory is written by hand, forgotten, and undone.
import { assert, counts, forgive, open, sees, shot, tell, scene } from "./stage.mjs";

await open(async (stage) => {
  const { page } = stage;
  tell([scene[2]]);
  const rows = page.locator(".row");
  await sees(rows, "Builds are cached by the lockfile");

  await page.getByRole("button", { name: "Write a memory" }).click();
  const dialog = page.getByRole("dialog");
  await dialog
    .getByLabel("What to remember")
    .fill("We deploy on Tuesdays, because the invoices run on Mondays.");
  await dialog.getByLabel("Title").fill("Deploys are on Tuesdays");
  await shot(page, "write");
  await dialog.getByRole("button", { name: "Remember" }).click();
  await sees(rows, "Deploys are on Tuesdays");
  const written = rows.filter({ hasText: "Deploys are on Tuesdays" });
  await sees(written, "written by hand");

  await written.getByRole("link", { name: "Deploys are on Tuesdays" }).click();
  await sees(page.locator("h1"), "Deploys are on Tuesdays");
  await sees(page.locator(".provenance"), "Written by hand");
  const address = page.url();
  await page.getByRole("button", { name: "Forget" }).click();
  await sees(page.locator(".toast"), "Forgotten");
  await sees(rows, "Builds are cached by the lockfile");
  await counts(written, 0);
  await shot(page, "forgotten");

  await page.locator(".toast").getByRole("button", { name: "Undo" }).click();
  await sees(page.locator(".toast"), "Memory restored");
  await sees(rows, "Deploys are on Tuesdays");

  // Without the message, the list of forgotten memories offers an undo.
  await page.goto(address);
  await sees(page.locator("h1"), "Deploys are on Tuesdays");
  await page.keyboard.press("x");
  await sees(page.locator(".toast"), "Forgotten");
  await stage.go("/log");
  await sees(page.locator(".card"), "undone");
  await sees(page.locator(".card"), "Deploys are on Tuesdays");
  await shot(page, "log");
  // Its own address shows it, too, and offers an undo.
  await page.goto(address);
  await sees(page.locator("h1"), "You forgot this memory");
  await shot(page, "forgotten-address");
  await page.getByRole("button", { name: "Undo" }).first().click();
  await sees(page.locator("h1"), "Deploys are on Tuesdays");
  await stage.go("/?q=Tuesdays");
  await sees(rows, "Deploys are on Tuesdays");
  assert.equal(await written.count(), 1);
  // An undo rebuilds tables; meanwhile the page of the log shows that the worker waits.
  forgive(stage, /status of (410|503)/);

  // Several at once.
  await stage.go("/?kind=observation");
  await counts(rows, 2);
  for (const key of ["j", "v", "j", "v"]) await page.keyboard.press(key);
  await sees(page.locator(".selection"), "2 memories selected");
  await shot(page, "selected");
  await page.keyboard.press("x");
  await sees(page.locator(".toast"), "2 memories forgotten");
  await counts(rows, 0);
  await page.locator(".toast", { hasText: "forgotten" }).getByRole("button", { name: "Undo" }).click();
  await counts(rows, 2);
  forgive(stage, /status of (410|503)/);
});
