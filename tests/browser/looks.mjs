// Every page in light, in dark and on a phone: layout, accessibility, and screenshots.
import {
  assert,
  distilled,
  isOpenToAll,
  open,
  scene,
  sees,
  shot,
  tellOverWeeks,
  withoutWorker,
} from "./stage.mjs";

await open(async (stage) => {
  const { page } = stage;
  // Old events would be distilled one by one.
  await distilled(stage, withoutWorker(tellOverWeeks));
  await page.reload();
  const name = (text) => page.locator(".row", { hasText: text }).first().getAttribute("data-name");
  const observation = await name("Invoice totals were rounded twice");
  const summary = await name("Correct the stored totals of March");
  const prompt = await name("The totals on invoice 4711");
  const pages = {
    feed: "/",
    found: "/?q=rounding",
    sessions: "/s",
    session: `/s/${scene[0].session}`,
    observation: `/m/${observation}`,
    summary: `/m/${summary}`,
    prompt: `/m/${prompt}`,
    projects: "/p",
    project: "/p/ledger",
    decisions: "/decisions",
    files: "/files",
    stats: "/stats?days=90",
    context: "/context?project=ledger",
    replays: "/replay",
    settings: "/settings",
    events: "/events",
    health: "/log",
  };
  const views = [
    ["light", 1280, 860],
    ["dark", 1280, 860],
    ["phone", 390, 844],
  ];
  for (const [name, path] of Object.entries(pages)) {
    await stage.go(path);
    await page.locator("main .page:not(.waiting) h1").first().waitFor({ state: "attached" });
    await sees(page.locator("#live"), "Live");
    await page.locator("main .skeleton").first().waitFor({ state: "detached" });
    for (const [view, width, height] of views) {
      await page.emulateMedia({ colorScheme: view === "dark" ? "dark" : "light", reducedMotion: "reduce" });
      await page.setViewportSize({ width, height });
      // Charts are rendered again for the width.
      await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
      const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(content <= screen, `${name} is ${content} wide on a ${view} of ${screen}`);
      // Dates and numbers stay within their row.
      const outside = await page.locator(".file-list li > *").evaluateAll((cells) =>
        cells
          .filter((cell) => cell.getBoundingClientRect().right > cell.parentElement.getBoundingClientRect().right + 1)
          .map((cell) => cell.textContent),
      );
      assert.deepEqual(outside, [], `${name}, ${view}`);
      await isOpenToAll(page, `${name}, ${view}`);
      // Rows outside of the screen are not rendered, so the screenshot shows the visible part.
      await shot(page, `${view}-${name}`, !["feed", "found"].includes(name));
    }
  }

  // Compact: one line for each memory, and at least twelve of them on a screen.
  await page.setViewportSize({ width: 1440, height: 900 });
  await stage.go("/");
  await page.getByRole("button", { name: "Compact list" }).click();
  const seen = await page
    .locator(".row:not(.kind-prompt)")
    .evaluateAll((rows) => rows.filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length);
  assert.ok(seen >= 12, `${seen} memories on a screen`);
  await isOpenToAll(page, "feed, compact");
  await shot(page, "light-compact");
  await page.getByRole("button", { name: "Compact list" }).click();

  // On a wide screen, the memory that has the focus is shown next to the list. A click shows it, another one opens it.
  await page.setViewportSize({ width: 1600, height: 900 });
  const preview = page.getByRole("complementary", { name: "Preview" });
  await sees(preview.locator("h2"), "Prompt");
  const texts = page.locator(".row:not(.kind-prompt) .headline");
  await texts.nth(2).click();
  await sees(preview.locator(".kicker"), await texts.nth(2).evaluate((link) => link.dataset.row));
  assert.equal(new URL(page.url()).pathname, "/");
  await isOpenToAll(page, "feed, wide");
  await shot(page, "light-wide");
  await texts.nth(2).click();
  await page.waitForURL("**/m/*");
  await page.setViewportSize({ width: 390, height: 844 });

  // On a phone, a setting has the whole width for its description.
  await stage.go("/settings");
  const about = await page.locator(".setting .about").first().boundingBox();
  assert.ok(about.width > 300, `a description is ${about.width} wide`);

  // On a phone, all filters fit, also with sessions of several clients.
  await page.route("**/api/types", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ json: { ...(await answer.json()), clients: ["claude-code", "codex"] } });
  });
  await stage.go("/");
  await page.getByLabel("Client").waitFor();
  const bar = await page.locator(".choices").boundingBox();
  const density = await page.getByRole("button", { name: "Compact list" }).boundingBox();
  assert.ok(bar.x + bar.width <= 390 && density.x + density.width <= 390, `the filters end at ${bar.x + bar.width}`);
  await page.unroute("**/api/types");

  // On a phone, pages and projects are behind a button.
  await stage.go("/");
  await page.getByRole("button", { name: "Pages and projects" }).click();
  await page.getByRole("navigation").getByRole("link", { name: "Stats" }).click();
  await sees(page.locator("h1"), "Stats");
  assert.equal(await page.getByRole("navigation").isVisible(), false);

  // A chosen theme survives a reload, and overrides the theme of the system.
  await page.setViewportSize({ width: 1280, height: 860 });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.getByRole("button", { name: "Colours: System" }).click();
  const dark = await paper();
  assert.notEqual(dark, light);
  await page.reload();
  assert.equal(await paper(), dark);
  await page.getByRole("button", { name: "Colours: Dark" }).click();
  assert.equal(await paper(), light);
  await page.emulateMedia({ colorScheme: "dark" });
  assert.equal(await paper(), light);
  await page.getByRole("button", { name: "Colours: Light" }).click();
  assert.equal(await paper(), dark);

  // For one project and period, the costs of the projects add up to the total.
  const period = await page.evaluate(async () => {
    const { get } = await import("/assets/api.js");
    return get("/api/stats/daily", { days: 90 });
  });
  const sum = (rows, key) => rows.reduce((total, row) => total + row[key], 0);
  assert.equal(sum(period.projects, "events"), sum(period.days, "events"));
  assert.equal(sum(period.types, "observations"), sum(period.days, "observations"));
  assert.equal(sum(period.projects, "cost_usd").toFixed(6), sum(period.days, "cost_usd").toFixed(6));

  // A chart can be read with a screen reader and with the keyboard.
  await stage.go("/stats");
  const events = page.locator(".chart", { hasText: "Events" }).first();
  await events.locator(".plot").focus();
  await page.keyboard.press("ArrowLeft");
  // Shortly after midnight, all of the work was yesterday.
  if (!(await events.locator(".readout").innerText()).includes("Tool uses"))
    await page.keyboard.press("ArrowLeft");
  await sees(events.locator(".readout"), "Tool uses");
  assert.ok((await events.locator("table tbody tr").count()) > 0);

  // A setting is changed, refused when it is wrong, and undone.
  await stage.go("/settings");
  const budget = page.locator(".setting", { has: page.locator("#CLAUDE_MEM_CONTEXT_TOKENS_MAX") });
  await budget.getByRole("textbox").fill("900");
  await budget.getByRole("textbox").press("Tab");
  await sees(budget, "chosen");
  await budget.getByRole("textbox").fill("many");
  await budget.getByRole("textbox").press("Tab");
  await sees(budget.getByRole("alert"), "CONTEXT_TOKENS_MAX");
  await page.getByLabel("Changed only").check();
  assert.ok((await page.locator(".setting:visible").count()) < 12, "changed settings at a glance");
  await page.getByLabel("Changed only").uncheck();
  stage.troubles.length = 0; // The browser itself reports that the worker refused it.
  await stage.go("/context?project=ledger");
  await sees(page.locator(".budget"), "of 900 tokens");
  await sees(page.locator(".paper"), "Amounts are rounded half to even");
  await stage.go("/settings");
  await budget.getByRole("button").click();
  await sees(budget, "default");
});
