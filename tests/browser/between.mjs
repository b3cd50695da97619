// A change during the load of a page is shown exactly once, whether the response contains it or not.
import { Session, assert, counts, open, scene, sees } from "./stage.mjs";

await open(async (stage) => {
  const { page } = stage;
  await sees(page.locator("main"), "No memories yet");
  const rows = page.locator(".row");
  let sessions = 0;

  /** Sends a prompt and a tool use, and waits until the page shows both. */
  async function say(text) {
    const session = new Session(scene[sessions]);
    session.prompt(text);
    session.tool(scene[sessions].turns[0].tools[0]);
    sessions += 1;
    await sees(page.locator("#live"), `${sessions} pending`);
  }

  /** Loads the feed, and has something happen at one of two moments. */
  async function load(text, when) {
    let asked = 0;
    await page.route("**/api/feed*", async (route) => {
      asked += 1;
      const early = when === "after the answer was made" && (await route.fetch());
      await say(text);
      await route.fulfill({ response: early || (await route.fetch()) });
    });
    await stage.go("/");
    await sees(rows, text);
    await page.unroute("**/api/feed*");
    assert.equal(asked, 1, "the page is not loaded again for it");
  }

  await load("said behind the answer", "after the answer was made");
  await counts(rows, 1);
  await load("said before the answer", "before the answer is made");
  await counts(rows, 2);

  // The same if only the list changes.
  const shown = new Promise((resolve) => {
    page.route("**/api/feed*", async (route) => {
      const response = await route.fetch();
      await say("said while a filter was set");
      await route.fulfill({ response });
      resolve();
    });
  });
  await page.getByRole("link", { name: "Prompts" }).click();
  await shown;
  await sees(rows, "said while a filter was set");
  await counts(rows, 3);
});
