// Recorded text is always shown as text, and without a key nothing is shown.
import { Session, assert, counts, distilled, forgetBrowser, open, run, sees, shot } from "./stage.mjs";

const SCRIPT = "<script>window.wasRun = 1</script>";
const IMAGE = "<img src=x onerror=window.wasRun=1>";
const CLOSING = "</pre></title></textarea><svg onload=window.wasRun=1>";

await open(async (stage) => {
  const { page, context, origin } = stage;
  // Short events reach only listeners that exist by then.
  await sees(page.locator("#live"), "Live");
  const session = new Session({ session: `h0${IMAGE}`, project: IMAGE });
  session.prompt(`${SCRIPT} ${IMAGE} look at this`);
  session.tool({
    tool: `Bash${IMAGE}`,
    input: { command: `echo '${SCRIPT}'` },
    output: { stdout: `${SCRIPT}${IMAGE}${CLOSING}`, stderr: "" },
  });
  run(["remember", `${IMAGE}${CLOSING} and "quotes" & 'more' of it`, "--title", `${SCRIPT}${IMAGE}`]);
  await sees(page.locator(".row"), SCRIPT);
  await sees(page.locator(".projects"), IMAGE);
  await sees(page.locator(".now"), `Bash${IMAGE}`);
  session.stop(`${IMAGE} done`);
  await distilled(stage, 2);

  const addresses = [
    "/",
    `/?project=${encodeURIComponent(IMAGE)}`,
    `/?q=${encodeURIComponent(`${SCRIPT} look`)}`,
    "/s",
    `/s/${encodeURIComponent(session.id)}`,
    "/m/1",
    "/m/2",
    "/m/P1",
    "/stats",
    `/context?project=${encodeURIComponent(IMAGE)}`,
    "/replay",
    "/settings",
    "/log",
    `/?file=${encodeURIComponent(IMAGE)}&concept=${encodeURIComponent(SCRIPT)}`,
  ];
  for (const path of addresses) {
    await stage.go(path);
    await page.locator("main .page:not(.waiting), main .empty").first().waitFor();
    await page.locator("main .skeleton").first().waitFor({ state: "detached" });
    for (const more of await page.locator("main summary").all()) await more.click();
    await counts(page.locator("main img, main script, main [onload], main [onerror], .side img"), 0);
    assert.equal(await page.evaluate(() => window.wasRun), undefined, path);
  }
  await stage.go("/m/2");
  await shot(page, "hostile", true);

  // The policy forbids it, too: no markup from text, no script in the page, no other origin.
  const refused = await page.evaluate(async () => {
    const outcome = {};
    try {
      document.body.innerHTML = "<b>x</b>";
      outcome.markup = "allowed";
    } catch (error) {
      outcome.markup = error.name;
    }
    const script = document.createElement("script");
    try {
      script.textContent = "window.wasRun = 1";
      document.body.append(script);
    } catch {
      /* An exception is a refusal, too. */
    }
    outcome.script = window.wasRun ?? "refused";
    outcome.elsewhere = await fetch("http://127.0.0.1:9/").then(
      () => "allowed",
      (error) => error.name,
    );
    return outcome;
  });
  assert.deepEqual(refused, { markup: "TypeError", script: "refused", elsewhere: "TypeError" });
  stage.troubles.splice(0); // The errors of these three.

  // A second browser with the link of the first, or with none, sees nothing.
  await forgetBrowser(stage);
  await page.goto(stage.link);
  await sees(page.locator("main"), "This link has expired");
  await page.goto(origin);
  await sees(page.locator("main"), "This page is locked");
  await sees(page.locator("main"), "claude-mem viewer");
  await shot(page, "locked");
  assert.ok(!(await page.content()).includes("window.wasRun"));
  stage.troubles.splice(0); // That it was refused.
});
