// A replay: its estimate, progress and changes, and switching to it.
import { assert, counts, distilled, open, scene, sees, shot, tell } from "./stage.mjs";

await open(async (stage) => {
  const { page } = stage;
  tell([scene[0], scene[2]]);
  await distilled(stage, 5);
  await stage.go("/replay");
  const form = page.locator("form.replay-form");
  // A preset fills the form and estimates it.
  await form.getByRole("button", { name: "Last 7 days, preview" }).click();
  await sees(form.locator(".estimate"), "no request is sent");
  assert.equal(await form.getByLabel("Since").inputValue(), "7d");
  assert.equal(await form.getByLabel("Preview only").isChecked(), true);
  await form.getByLabel("Model").fill("claude-sonnet-5");
  // Other instructions: chosen as a file, of which only the text is sent, or written.
  await form.getByText("Custom prompt").click();
  const prompt = form.getByLabel("Prompt", { exact: true });
  const file = { name: "mine.txt", mimeType: "text/plain", buffer: Buffer.from("Tell me about walruses.") };
  await form.getByLabel("Prompt file").setInputFiles(file);
  await page.waitForFunction(() => document.querySelector("[name=prompt_text]").value.includes("walruses"));
  await prompt.fill("Tell me only about otters.");
  const start = form.getByRole("button", { name: "Start" });
  assert.equal(await start.isDisabled(), true);
  await form.getByRole("button", { name: "Estimate" }).click();
  await sees(form.locator(".estimate div", { hasText: "Requests" }), "3");
  await sees(form.locator(".estimate"), "claude-sonnet-5");
  await shot(page, "estimate");

  await start.click();
  const running = page.locator(".running");
  await sees(running, "Distilling");
  await sees(running, "0 of 3 requests");
  assert.equal(await running.getByRole("progressbar").getAttribute("value"), "0");
  await shot(page, "replay");

  // The model responds now, and the page is updated.
  console.log("open the gate");
  await sees(running, "Finished");
  await sees(running, "3 of 3 requests");
  const made = page.locator(".card", { hasText: "Generation 1" });
  await sees(made, "preview");

  await running.getByRole("link", { name: "What it changed" }).click();
  await sees(page.locator("h1"), "What generation 1 would change");
  await sees(page.locator(".pairs"), "Seen again: Builds are cached by the lockfile");
  await shot(page, "diff", true);
  await page.getByRole("button", { name: "Switch to this generation" }).click();
  await sees(page.locator("h1"), "What generation 1 changed");
  await stage.go("/");
  await sees(page.locator(".row"), "Seen again: Builds are cached by the lockfile");
  await counts(page.locator(".row", { hasText: "Seen again" }), 5);

  // Both generations of the same events, side by side.
  await page.getByRole("link", { name: "Seen again: Builds are cached" }).click();
  await counts(page.locator(".generation"), 2);
  await sees(page.locator(".generation.is-current"), "Seen again: Builds are cached");
  await shot(page, "generations", true);
});
