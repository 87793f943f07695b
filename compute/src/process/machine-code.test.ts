import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { agentSources } from "@holdfast/common/agent-package.ts";
import { digestOfFiles } from "@holdfast/common/stored-build.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { layoutOf } from "../local/machine-paths.ts";
import { createMachineCode, removeOldCode } from "./machine-code.ts";

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

test("code that another installation of the host has built is copied", async () => {
  const runtime = {
    abilities: { isolation: "none", loop: false, groups: { version: "none", reason: "" } },
    checkout: join(directory, "checkout"),
    hidden: undefined,
    node: "/node",
  } as const;
  mkdirSync(join(runtime.checkout, "agent"), { recursive: true });
  writeFileSync(join(runtime.checkout, "agent", "main.ts"), "");
  const digest = digestOfFiles(runtime.checkout, agentSources, [process.version, runtime.node]);
  const stored = join(directory, "stored");
  mkdirSync(join(stored, digest, "compile-cache", "v24-0"), { recursive: true });
  writeFileSync(join(stored, digest, "main.mjs"), "code");
  const open = async (name: string) => {
    const machineCode = createMachineCode({ layout: layoutOf(join(directory, name)), runtime, stored, log: silentLog });
    expect(await machineCode.openTo(7)).toBeUndefined();
    await machineCode.make("/no-image", AbortSignal.timeout(10_000));
    return machineCode.openTo(7);
  };
  const [first = "", second = ""] = [await open("first"), await open("second")];
  expect(first).toBe(join(directory, "first", "code", digest));
  expect(readFileSync(join(first, "main.mjs"), "utf8")).toBe("code");
  // A user's link to the compiled code belongs to one installation.
  expect(readdirSync(join(second, "compile-cache")).toSorted()).toEqual(["v24-0", "v24-7"]);
  expect(readdirSync(join(stored, digest, "compile-cache"))).toEqual(["v24-0"]);
});
