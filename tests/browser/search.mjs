// Search while typing. Filters are in the address: they survive a reload and the back button.
import { assert, counts, distilled, open, run, sees, shot, tell } from "./stage.mjs";

await open(async (stage) => {
  const { page } = stage;
  tell();
  await distilled(stage, 9);
  const rows = page.locator(".row");
  const parameter = (name) => new URL(page.url()).searchParams.get(name);

  const box = page.getByRole("searchbox", { name: "Search memory" });
  await box.pressSequentially("vacuum lock", { delay: 15 });
  await sees(page.locator(".row").first(), "VACUUM FULL locks the table");
  await page.waitForFunction(() => new URL(location).searchParams.get("q") === "vacuum lock");
  await sees(page.locator("mark"), "VACUUM");
  await sees(page.locator(".search-status"), "match");
  await shot(page, "search");
  assert.match(await page.title(), /vacuum lock/);

  // One step back leaves the search, for any number of typed letters.
  await box.blur();
  await page.goBack();
  await sees(rows, "Builds are cached by the lockfile");
  assert.equal(parameter("q"), null);
  await page.goForward();
  await sees(page.locator(".row").first(), "VACUUM FULL locks the table");
  await page.goBack();

  await page.getByRole("link", { name: "ledger", exact: false }).first().click();
  await sees(rows, "118 of 20,431 totals");
  assert.equal(parameter("project"), "ledger");
  await counts(rows.filter({ hasText: "VACUUM" }), 0);

  await page.getByLabel("Type").selectOption("decision");
  await counts(rows, 1);
  assert.deepEqual([parameter("type"), parameter("project")], ["decision", "ledger"]);
  await page.reload();
  await counts(rows, 1);
  await sees(rows, "Amounts are rounded half to even");

  await page.goBack();
  await counts(rows.filter({ hasText: "118 of 20,431" }), 1);
  await page.goBack();
  await sees(rows, "Builds are cached by the lockfile");

  await page.getByLabel("When").selectOption("today");
  await page.waitForFunction(() => new URL(location).searchParams.get("since") === "today");
  await sees(rows, "Builds are cached by the lockfile");
  await page.getByLabel("When").selectOption("between");
  await page.getByLabel("From").fill("2020-01-01");
  await page.getByLabel("To").fill("2020-12-31");
  await sees(page.locator("main"), "Nothing here");

  await stage.go("/?concept=trade-off");
  await counts(rows, 1);
  await sees(rows, "Amounts are rounded half to even");
  await page.getByRole("link", { name: "Remove the filter trade-off" }).click();
  await sees(rows, "Builds are cached by the lockfile");

  await box.fill("vacu");
  await sees(page.locator(".row").first(), "VACUUM FULL locks the table");
  await box.fill("vacumm");
  await page.locator(".search-status").getByRole("link", { name: "vacuum", exact: true }).click();
  await sees(page.locator(".row").first(), "VACUUM FULL locks the table");

  // After a pause in typing, a question finds memories that share no word with it.
  run(["remember", "Each address may try five passwords a minute; then it gets status 429."]);
  while (!run(["index"]).includes(" 0 of ")) await page.waitForTimeout(50);
  await box.fill("how do we keep people from logging in too often");
  await sees(page.locator(".row").first(), "five passwords a minute");
  await sees(page.locator(".search-status"), "by meaning");
  await box.fill("vacu");
  await sees(page.locator(".row").first(), "VACUUM FULL locks the table");

  // While a typed word matches nothing, the last results stay. A new query starts at the top.
  await page.evaluate(() => scrollTo(0, 300));
  await box.fill('"zebra crossing"');
  await sees(page.locator(".search-status"), 'No results for “"zebra crossing"”');
  await sees(page.locator(".row").first(), "VACUUM FULL locks the table");
  assert.equal(await page.evaluate(() => scrollY), 0);
  await page.reload();
  await sees(page.locator("main h2"), 'No results for “"zebra crossing"”');
  await shot(page, "nothing-found");

  // A row represents all results of its turn, including those by meaning.
  const results = /\/api\/search(\?|$)/;
  await page.route(results, async (route) => {
    const response = await route.fetch();
    const found = await response.json();
    const json = { ...found, hits: found.hits.slice(0, 1), totalResults: 2, nearResults: 3, hasMore: false };
    await route.fulfill({ response, json });
  });
  await stage.go("/?q=vacuum");
  await sees(page.locator(".search-status"), "2 matches and 3 by meaning in 1 turn");
});
