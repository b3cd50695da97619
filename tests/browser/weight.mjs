// The first paint needs few bytes, and a list of any length is loaded page by page.
import { Session, assert, counts, open, run, sees } from "./stage.mjs";

const MEMORIES = 60;

await open(async (stage) => {
  const { page, context } = stage;
  const filler =
    "It keeps what it was told, word for word, and says so in as many words as it takes. ".repeat(6);
  for (let at = 0; at < MEMORIES; at += 1)
    run(["remember", `${filler}${at}`, "--title", `Memory number ${at}`]);
  await sees(page.locator(".row"), "Memory number 59");

  const wire = await context.newCDPSession(page);
  await wire.send("Network.enable");
  await wire.send("Network.setCacheDisabled", { cacheDisabled: true });
  const asked = new Map();
  wire.on("Network.requestWillBeSent", ({ requestId, request }) =>
    asked.set(requestId, { url: new URL(request.url).pathname, bytes: 0 }),
  );
  // A script that the page before loaded when idle may finish now.
  wire.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (asked.has(requestId)) asked.get(requestId).bytes = encodedDataLength;
  });
  await stage.go("/");
  await sees(page.locator(".row"), "Memory number 59");
  // The last script is loaded when the page is idle. The stream never ends, so the network is never idle.
  const isLoaded = () => [...asked.values()].some(({ url, bytes }) => url === "/assets/write.js" && bytes > 0);
  while (!isLoaded()) await page.waitForTimeout(10);
  const all = [...asked.values()];
  const sum = all.reduce((total, { bytes }) => total + bytes, 0);
  console.log(`first paint: ${sum} bytes in ${all.length} requests`);
  assert.ok(sum < 100_000, JSON.stringify(all));
  assert.ok(
    all.some(({ url, bytes }) => url === "/assets/app.js" && bytes > 0),
    JSON.stringify(all),
  );

  // The second time the browser has the files, and gets a 304.
  await wire.send("Network.setCacheDisabled", { cacheDisabled: false });
  await stage.go("/");
  await sees(page.locator(".row"), "Memory number 59");
  const known = await page.evaluate(() =>
    fetch("/assets/app.js", { cache: "no-cache" }).then((answer) => answer.headers.get("etag")),
  );
  const status = await page.evaluate(
    (tag) =>
      fetch("/assets/app.js", { headers: { "if-none-match": tag }, cache: "no-store" }).then(
        (answer) => answer.status,
      ),
    known,
  );
  assert.equal(status, 304);

  const rows = page.locator(".row");
  const before = await rows.count();
  assert.ok(before < MEMORIES, `${before} rows at first`);
  await page.mouse.wheel(0, 100_000);
  while ((await rows.count()) < MEMORIES) {
    await page.mouse.wheel(0, 100_000);
    await page.waitForTimeout(20);
  }
  await counts(rows, MEMORIES);
  await sees(page.locator(".end"), "End of results");
  await sees(rows, "Memory number 0");

  // For any number of projects, the bars of a figure add up to its total.
  for (let at = 0; at < 12; at += 1) new Session({ session: `session-${at}`, project: `project-${at}` });
  await stage.go("/stats");
  const bars = page.locator("figure", { hasText: "Events by project" }).locator("li");
  await sees(bars, "4 other projects");
  const numbers = await bars.locator(".number").allInnerTexts();
  assert.equal(numbers.length, 10);
  const total = page.locator(".figures > div", { has: page.getByText("Events", { exact: true }) }).locator("dd");
  const added = numbers.reduce((all, number) => all + Number(number), 0);
  assert.ok((await total.innerText()).startsWith(`${added}`), `${added} of ${await total.innerText()}`);
});
