// A memory is edited, pinned and marked as wrong, on a desktop and on a phone.
import { assert, counts, open, sees, shot, tell, scene } from "./stage.mjs";

await open(async (stage) => {
  const { page } = stage;
  tell([scene[2]]);
  const rows = page.locator(".row");
  const title = "Builds are cached by the lockfile";
  await sees(rows, title);
  await rows.getByRole("link", { name: title }).first().click();
  await sees(page.locator("h1"), title);
  const badges = page.locator(".kicker .badge");
  const button = (name) => page.getByRole("button", { name, exact: true });
  const dialog = page.getByRole("dialog");

  await button("Edit").click();
  await dialog.getByLabel("Title").fill("Builds are cached by lockfile and compiler");
  await dialog.getByLabel("Text").fill("The key has both, so that a new compiler builds again.");
  await shot(page, "edit");
  await dialog.getByRole("button", { name: "Save" }).click();
  await sees(page.locator("h1"), "Builds are cached by lockfile and compiler");
  await sees(page.locator("article"), "so that a new compiler builds again");
  await sees(badges, "edited");
  await counts(dialog, 0);

  await button("Pin").click();
  await sees(badges.filter({ hasText: "pinned" }), "pinned");
  await button("Unpin").click();
  await counts(badges.filter({ hasText: "pinned" }), 0);

  await page.setViewportSize({ width: 390, height: 800 });
  await button("Mark as wrong").click();
  await dialog.getByLabel("Why is it wrong?").fill("the cache was removed");
  await shot(page, "wrong-phone");
  await dialog.getByRole("button", { name: "Mark as wrong" }).click();
  await sees(badges.filter({ hasText: "wrong" }), "wrong");
  await sees(page.locator(".head"), "the cache was removed");
  await shot(page, "marked-phone");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  assert.equal(wide, false, "nothing is wider than the screen");
  await stage.go("/?q=compiler");
  await sees(rows.filter({ hasText: "lockfile and compiler" }), "wrong");
  await page.goBack();
  await button("Not wrong").click();
  await counts(badges.filter({ hasText: "wrong" }), 0);
});
