// What the scripts share: a browser that was let in, hooks, and a way to say what should be seen.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { CLAUDE_MEM_BINARY: binary, CHROMIUM, PLAYWRIGHT, AXE, SCREENSHOTS, HOME } = process.env;
const { chromium } = await import(join(PLAYWRIGHT, "playwright-core/index.mjs"));

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--force-color-profile=srgb",
];

/** The sessions that hooks tell of. */
export const scene = JSON.parse(readFileSync(new URL("./scene.json", import.meta.url)));

/** Runs our binary, as a user would. */
export function run(args, input = "", variables = {}) {
  const env = { HOME, PATH: "/usr/bin:/bin", CLAUDE_MEM_WORKER_AUTOSTART: "false", ...variables };
  const { status, stdout, stderr } = spawnSync(binary, args, { input, env, cwd: HOME, encoding: "utf8" });
  assert.equal(status, 0, `claude-mem ${args.join(" ")}: ${stderr}`);
  return stdout;
}

/** A session as Claude Code would tell of it. */
export class Session {
  constructor({ session, project }) {
    this.id = session;
    this.cwd = join(HOME, project);
    this.uses = 0;
    mkdirSync(this.cwd, { recursive: true });
    this.hook("context", { hook_event_name: "SessionStart", source: "startup" });
  }

  prompt(text) {
    this.hook("new", { hook_event_name: "UserPromptSubmit", prompt: text });
  }

  tool({ tool, input, output }) {
    this.uses += 1;
    const tool_use_id = `toolu_${this.id.slice(0, 8)}_${this.uses}`;
    this.hook("save", {
      hook_event_name: "PostToolUse",
      tool_name: tool,
      tool_use_id,
      tool_input: input,
      tool_response: output,
    });
  }

  stop(last_assistant_message) {
    this.hook("summary", { hook_event_name: "Stop", last_assistant_message });
  }

  turn({ prompt, tools, last }) {
    this.prompt(prompt);
    for (const tool of tools) this.tool(tool);
    this.stop(last);
  }

  end() {
    this.hook("cleanup", { hook_event_name: "SessionEnd", reason: "exit" });
  }

  hook(name, payload) {
    const said = run([name], JSON.stringify({ session_id: this.id, cwd: this.cwd, ...payload }));
    assert.equal(JSON.parse(said).continue, true);
  }
}

/** Everything of the scene, or some sessions of it, told and distilled. */
export function tell(sessions = scene) {
  return sessions.map((each) => {
    const session = new Session(each);
    for (const turn of each.turns) session.turn(turn);
    return session;
  });
}

/** A browser before the page. Whatever the page complains about fails the test. */
export async function open(play, options = {}) {
  const link = process.argv[2];
  const origin = new URL(link).origin;
  const profile = mkdtempSync(join(tmpdir(), "claude-mem-browser-"));
  const settings = {
    executablePath: CHROMIUM,
    args: FLAGS,
    viewport: { width: 1280, height: 860 },
    colorScheme: "light",
    locale: "en-GB",
  };
  const context = await chromium.launchPersistentContext(profile, { ...settings, ...options });
  context.setDefaultTimeout(20_000);
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin });
  const troubles = [];
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && troubles.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => troubles.push(`script: ${error.stack}`));
  page.on("dialog", (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on(
    "request",
    (request) =>
      new URL(request.url()).origin !== origin && troubles.push(`asked elsewhere: ${request.url()}`),
  );
  const stage = { page, context, origin, link, troubles, go: (path) => page.goto(origin + path) };
  try {
    await page.goto(link);
    await play(stage);
    assert.deepEqual(troubles, []);
  } catch (error) {
    await page.screenshot({ path: join(SCREENSHOTS, "failed.png") }).catch(() => {});
    console.error(`at ${page.url()}`);
    console.error(
      await page
        .locator("body")
        .innerText()
        .catch(() => ""),
    );
    throw error;
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

/** Waits until the text of an element is as it should be. */
export async function sees(locator, text) {
  await locator.filter({ hasText: text }).first().waitFor();
}

/** Waits until there are as many. */
export async function counts(locator, wanted) {
  for (let tries = 0; (await locator.count()) !== wanted; tries += 1) {
    assert.ok(tries < 400, `there are ${await locator.count()} and not ${wanted} of ${locator}`);
    await locator.page().evaluate(() => new Promise(requestAnimationFrame));
    await locator.page().waitForTimeout(25);
  }
}

/** Waits until nothing is being distilled any more and so many memories are there. */
export async function distilled({ page }, observations) {
  await page.waitForFunction(
    async (wanted) => {
      const answer = await fetch("/api/stats");
      const { database } = await answer.json();
      const now = await (await fetch("/api/processing")).json();
      return database.observations >= wanted && !now.isProcessing && now.queueDepth === 0;
    },
    observations,
    { polling: 100 },
  );
}

/** Keeps what is seen. */
export async function shot(page, name, fullPage = false) {
  if (fullPage) await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage });
}

/** No barrier of the graver kinds to people who use the page in other ways. */
export async function isOpenToAll(page, where) {
  // Evaluated through the debugger, which the page's policy does not concern.
  await page.evaluate(`if (!window.axe) { ${readFileSync(join(AXE, "axe-core/axe.min.js"), "utf8")} }`);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const grave = found.violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const told = grave.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}: ${nodes
        .map((node) => `${node.target} ${node.failureSummary}`)
        .slice(0, 3)
        .join(" | ")}`,
  );
  assert.deepEqual(told, [], where);
}

export { assert };
