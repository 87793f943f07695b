import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { removeOldCode } from "./machine-code.ts";

const isRoot = process.getuid?.() === 0;
let directory: string;
let code: string;
let machine: ChildProcess | undefined;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-code-"));
  code = join(directory, "code");
  for (const name of ["current", "old", "older", "fresh", "left.going"]) {
    mkdirSync(join(code, name), { recursive: true });
    writeFileSync(join(code, name, "main.js"), "");
    if (name !== "fresh") utimesSync(join(code, name), 1, 1);
  }
});
afterEach(async () => {
  await end();
  rmSync(directory, { recursive: true, force: true });
});

async function end(): Promise<void> {
  const running = machine;
  machine = undefined;
  if (running === undefined) return;
  running.kill("SIGKILL");
  await once(running, "exit");
}

test("unused code is removed, except for the current one and a new one", async () => {
  expect((await removeOldCode(join(code, "current"), Date.now())).sort()).toEqual(["left.going", "old", "older"]);
  expect(readdirSync(code).sort()).toEqual(["current", "fresh"]);
});

test.skipIf(!isRoot)("mounted code stays as long as its machine runs (only root may mount)", async () => {
  const runtimePaths = join(directory, "inside");
  mkdirSync(runtimePaths);
  const script = 'mount --bind "$1" "$2" && echo mounted && exec sleep 600';
  machine = spawn("unshare", ["--mount", "sh", "-c", script, "sh", join(code, "old"), runtimePaths], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (machine.stdout !== null) await once(machine.stdout, "data");
  await removeOldCode(join(code, "current"), Date.now());
  expect(readdirSync(code).sort()).toEqual(["current", "fresh", "old"]);
  await end();
  await removeOldCode(join(code, "current"), Date.now());
  expect(readdirSync(code).sort()).toEqual(["current", "fresh"]);
});
