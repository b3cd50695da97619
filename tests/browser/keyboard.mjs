// Uses every page with the keyboard only.
import { assert, distilled, open, sees, shot, tell } from "./stage.mjs";

await open(async (stage) => {
  const { page } = stage;
  tell();
  await distilled(stage, 9);
  await stage.go("/");
  await page.locator(".row").first().waitFor();
  const press = (...keys) =>
    keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
  const focused = () => page.evaluate(() => document.activeElement.dataset.row);
  const names = await page.locator(".row").evaluateAll((rows) => rows.map((row) => row.dataset.name));

  await press("j");
  assert.equal(await focused(), names[0]);
  await press("j", "j");
  assert.equal(await focused(), names[2]);
  await press("k");
  assert.equal(await focused(), names[1]);
  await shot(page, "keyboard");
  const headline = await page.locator(`[data-row="${names[1]}"]`).innerText();
  await press("Enter");
  await page.waitForURL(`**/m/${names[1]}`);
  await page.locator(".kicker").waitFor();
  assert.ok(headline.length > 0);
  await press("Escape");
  await page.waitForURL((url) => url.pathname === "/");
  await page.waitForFunction((name) => document.activeElement.dataset.row === name, names[1]);

  await press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "query");
  // Results by meaning are requested after a pause. Here they arrive when a row has the focus.
  const byMeaning = (url) => url.pathname === "/api/search" && url.searchParams.get("typing") !== "true";
  let arrive;
  const arrived = new Promise((done) => (arrive = done));
  await page.route(byMeaning, (route) => arrived.then(() => route.continue()));
  const asked = page.waitForRequest((request) => byMeaning(new URL(request.url())));
  await page.keyboard.type("vacuum");
  await sees(page.locator(".row").first(), "VACUUM FULL");
  await asked;
  // Letters that are typed into a field are not commands.
  assert.equal(await page.getByRole("searchbox").inputValue(), "vacuum");
  await press("Enter");
  const row = await page.evaluateHandle(() => document.activeElement);
  const name = await focused();
  assert.ok(name);
  arrive();
  await page.waitForFunction((before) => !before.isConnected, row);
  assert.equal(await focused(), name);
  await page.unroute(byMeaning);
  await press("Enter");
  await sees(page.locator("h1"), "VACUUM FULL");

  // The memory before it, and back.
  const place = new URL(page.url()).pathname;
  const title = await page.locator("h1").innerText();
  await sees(page.locator(".neighbours"), "Earlier");
  await press("[");
  await page.waitForURL((url) => /^\/m\//.test(url.pathname) && url.pathname !== place);
  // The address changes before the memory is there.
  await page.waitForFunction((before) => document.querySelector("h1")?.innerText !== before, title);
  await sees(page.locator(".neighbours"), "Later");
  await press("]");
  await page.waitForURL(`**${place}`);

  const screen = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 600 });
  await press("?");
  await sees(page.getByRole("dialog"), "Next row");
  assert.equal(await page.getByRole("dialog").evaluate((dialog) => dialog.scrollTop), 0, "it begins at its top");
  await page.setViewportSize(screen);
  await shot(page, "keys");
  await press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });

  // The palette goes to pages, projects and memories.
  await press("Control+k");
  await page.locator(".palette input").waitFor();
  await page.keyboard.type("walr");
  await sees(page.getByRole("option"), "walrus");
  await press("Enter");
  await page.waitForURL("**/p/walrus");
  await press("Control+k");
  await page.locator(".palette input").waitFor();
  await page.keyboard.type("retry policy");
  await sees(page.getByRole("option", { selected: true }), "One retry policy");
  await shot(page, "palette");
  await press("Enter");
  await sees(page.locator("h1"), "One retry policy");

  await press("g", "s");
  await sees(page.locator("h1"), "Sessions");
  await press("j", "Enter");
  await page.locator(".turn").first().waitFor();
  await press("g", "t");
  await sees(page.locator("h1"), "Stats");
  await press("n");
  await sees(page.getByRole("dialog"), "Write a memory");
  assert.equal(await page.evaluate(() => document.activeElement.name), "text");
  await press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await press("d");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");

  // The first Tab stop is a link that skips the header.
  await stage.go("/");
  await page.locator(".row").first().waitFor();
  await press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
});
