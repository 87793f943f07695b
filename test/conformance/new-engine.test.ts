import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { etcd as client } from "@holdfast/testing/engines/etcd/client.ts";
import { createEtcdDriver } from "@holdfast/testing/engines/etcd/driver.ts";
import { etcd as profile } from "@holdfast/testing/engines/etcd/profile.ts";
import { registryLines } from "@holdfast/testing/engines/etcd/registry-lines.ts";
import { etcd as row } from "@holdfast/testing/engines/etcd/row.ts";
import { registryLines as noteLines } from "@holdfast/testing/note/registry-lines.ts";
import { type ExtendedCheckout, extendCheckout } from "@holdfast/testing/platform/extended-checkout.ts";

// CONTRIBUTING's "A new engine": etcd, whose members elect their leader, and "A new system": notes, both in a copy of
// the checkout. peers.long.test.ts and peers-*.long.test.ts run services of etcd, and new-system.test.ts runs notes.

let extended: ExtendedCheckout;
beforeAll(() => {
  extended = extendCheckout([...registryLines, ...noteLines]);
});
afterAll(() => extended?.remove());

test("an engine has at most eight lines outside of its folder", () => {
  expect(registryLines.length).toBeLessThanOrEqual(8);
  const parts = [row.title, profile.verifierOf("x"), client.programs[0], createEtcdDriver.name];
  expect(parts).toEqual(["etcd", expect.any(String), "etcdctl", "createEtcdDriver"]);
});

test("with its lines, its facts agree in every package", { timeout: 120_000 }, () => {
  const vitest = join(extended.directory, "node_modules", "vitest", "vitest.mjs");
  const run = spawnSync(
    process.execPath,
    [vitest, "run", "test/conformance/engine-facts.test.ts", "--reporter=verbose"],
    {
      cwd: extended.directory,
      encoding: "utf8",
      env: { PATH: process.env["PATH"], HOME: process.env["HOME"], TMPDIR: process.env["TMPDIR"], NO_COLOR: "1" },
    },
  );
  expect(run.status, run.stdout + run.stderr).toBe(0);
  expect(run.stdout).toContain("etcd > the driver is the one of the engine, with its topology");
});

test("with the lines of a system, at most eight, controllers have its events and settings, and there is its command", () => {
  expect(noteLines.length).toBeLessThanOrEqual(8);
  const node = (...options: string[]) => {
    const run = spawnSync(process.execPath, options, { cwd: extended.directory, encoding: "utf8" });
    expect(run.status, run.stderr).toBe(0);
    return run.stdout;
  };
  const read = `import { eventTypes, systems } from "./controller/src/systems.ts";
import { settings } from "./controller/src/config.ts";
console.log(systems.at(-1).name, eventTypes.has("note.rendered"), "notePrefix" in settings);`;
  expect(node("--input-type=module", "--eval", read)).toBe("note true true\n");
  expect(node("bin/holdfast.js", "notes", "list", "--help")).toContain("list all notes with their texts");
});
