// Shared by the scripts: a browser with access, hooks, and assertions about the page.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const { CLAUDE_MEM_BINARY: binary, CHROMIUM, PLAYWRIGHT, AXE, SCREENSHOTS, HOME } = process.env;
const { chromium } = await import(join(PLAYWRIGHT, "playwright-core/index.mjs"));

/** Waiting for a state ends shortly before the test runner would end the test, which shows no page. */
const PATIENCE_MS = 240_000;

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
  /** `at` is when it begins, in milliseconds; else it happens now. */
  constructor({ session, project }, at) {
    this.id = session;
    this.at = at;
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
    if (input.file_path) this.touch(input.file_path);
    const tool_use_id = `toolu_${this.id.slice(0, 8)}_${this.uses}`;
    this.hook("save", {
      hook_event_name: "PostToolUse",
      tool_name: tool,
      tool_use_id,
      tool_input: input,
      tool_response: output,
    });
  }

  /** A file that the session is about, written now or this many seconds later. */
  touch(path, later = 0) {
    const file = join(this.cwd, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${path} after ${this.uses} uses of tools\n`);
    const written = (this.at ?? Date.now()) / 1000 + later;
    utimesSync(file, written, written);
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
    const moment = this.at && { CLAUDE_MEM_NOW: new Date((this.at += 47_000)).toISOString() };
    const output = run([name], JSON.stringify({ session_id: this.id, cwd: this.cwd, ...payload }), moment);
    assert.equal(JSON.parse(output).continue, true);
  }
}

/** Everything of the scene, or some sessions of it, recorded and distilled. */
export function tell(sessions = scene) {
  return sessions.map((each) => {
    const session = new Session(each);
    for (const turn of each.turns) session.turn(turn);
    return session;
  });
}

/** Has the worker hold its breath meanwhile, as if it had not been there. */
export function withoutWorker(work) {
  const { pid } = JSON.parse(readFileSync(join(HOME, ".claude-mem/worker.json")));
  process.kill(pid, "SIGSTOP");
  try {
    return work();
  } finally {
    process.kill(pid, "SIGCONT");
  }
}

/** The scene as if it had happened since yesterday, after weeks of other work. Gives how much is remembered then. */
export function tellOverWeeks() {
  const { turns, ...atlas } = scene[2];
  let observations = 9;
  for (let day = 24; day > 2; day -= day % 7 === 3 ? 3 : 1) {
    const session = new Session({ ...atlas, session: `${day}-days-ago` }, Date.now() - day * 86_400_000);
    const tools = Array.from({ length: 2 + ((day * 5) % 7) }, () => turns[0].tools[0]);
    session.turn({ prompt: `Work of ${day} days ago`, tools, last: "Done." });
    session.end();
    observations += 1;
  }
  const hours = [3, 22, 1];
  scene
    .toSorted((a, b) => hours[scene.indexOf(b)] - hours[scene.indexOf(a)])
    .forEach((each) => {
      const session = new Session(each, Date.now() - hours[scene.indexOf(each)] * 3_600_000);
      for (const turn of each.turns) session.turn(turn);
    });
  return observations;
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
  context.setDefaultTimeout(PATIENCE_MS);
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
    // The page exchanges the link for a key before it continues.
    await page.waitForFunction(() => location.pathname !== "/open");
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

/** Makes the browser unknown, as a new one is. */
export async function forgetBrowser({ page }) {
  await page.evaluate(() => {
    localStorage.clear();
    indexedDB.deleteDatabase("claude-mem");
  });
}

/** Leaves out of account what the browser itself says of an answer that was to be expected. */
export function forgive({ troubles }, pattern) {
  const left = troubles.filter((trouble) => !pattern.test(trouble));
  troubles.splice(0, troubles.length, ...left);
}

/** Waits until the text of an element is as it should be. */
export async function sees(locator, text) {
  await locator.filter({ hasText: text }).first().waitFor();
}

/** Waits until there are as many. */
export async function counts(locator, wanted) {
  for (const end = Date.now() + PATIENCE_MS; (await locator.count()) !== wanted; ) {
    assert.ok(Date.now() < end, `there are ${await locator.count()} and not ${wanted} of ${locator}`);
    await locator.page().evaluate(() => new Promise(requestAnimationFrame));
    await locator.page().waitForTimeout(25);
  }
}

/** Waits until nothing is being distilled any more and this many memories are there. */
export async function distilled({ page }, observations) {
  await page.waitForFunction(
    async (wanted) => {
      const headers = { authorization: `Bearer ${localStorage.getItem("claude-mem-key")}` };
      const answer = await fetch("/api/stats", { headers });
      const { database } = await answer.json();
      const now = await (await fetch("/api/processing", { headers })).json();
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

/** No barrier of any kind to people who use the page in other ways. */
export async function isOpenToAll(page, where) {
  // Evaluated through the debugger, to which the page's policy does not apply.
  await page.evaluate(`if (!window.axe) { ${readFileSync(join(AXE, "axe-core/axe.min.js"), "utf8")} }`);
  const rules = { "target-size": { enabled: true } };
  const found = await page.evaluate(
    (rules) => axe.run(document, { resultTypes: ["violations"], rules }),
    rules,
  );
  const violations = found.violations.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}: ${nodes
        .map((node) => `${node.target} ${node.failureSummary}`)
        .slice(0, 3)
        .join(" | ")}`,
  );
  assert.deepEqual(violations, [], where);
}

export { assert };
