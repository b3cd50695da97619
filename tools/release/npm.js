#!/usr/bin/env node
// Starts the binary of this platform. Hooks call that binary directly, without Node.
const { spawnSync } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;
const suffix = process.platform === "win32" ? ".exe" : "";
let binary;
try {
  binary = require.resolve(`@NAME@-${platform}/bin/claude-mem${suffix}`);
} catch {
  console.error(`error: @NAME@ has no binary for ${platform}, or npm left out optional dependencies`);
  console.error("hint: install without `--omit=optional`, or build it with Rust");
  process.exit(1);
}
const { status, signal, error } = spawnSync(binary, process.argv.slice(2), { stdio: "inherit" });
if (error) {
  console.error(`error: ${binary} cannot be started: ${error.message}`);
}
if (signal) {
  process.kill(process.pid, signal);
}
process.exit(status ?? 1);
