import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { openPrograms, type Programs, sourcePrograms } from "./programs.ts";

const checkout = join(import.meta.dirname, "..", "..");
const directory = mkdtempSync(join(tmpdir(), "programs-"));
afterAll(() => rmSync(directory, { recursive: true }));

it("bundles every program, which starts without its sources", () => {
  execFileSync(process.execPath, [join(checkout, "local", "bundle.ts"), directory]);
  const missing = Object.keys(sourcePrograms(checkout)).filter((name) => !existsSync(join(directory, `${name}.mjs`)));
  expect(missing).toEqual([]);
  // Without settings it says what it misses, after it has loaded all of its modules.
  const { stderr } = spawnSync(process.execPath, [join(directory, "controller.mjs")], {
    cwd: directory,
    env: {},
    encoding: "utf8",
  });
  expect(stderr).toContain("HOLDFAST_INSTALLATION_ID is not set");
});

it("builds once for the same code", async () => {
  const printed: string[] = [];
  const open = (): Promise<Programs> => openPrograms(checkout, {}, (line) => void printed.push(line));
  const first = await open();
  const lines = printed.length;
  expect(await open()).toEqual(first);
  expect(printed.length).toBe(lines);
  expect(Object.values(first).filter((path) => !existsSync(path))).toEqual([]);
});

it("runs the sources when the operator asks for them", async () => {
  const environment = { HOLDFAST_PROGRAMS: "source" };
  expect(await openPrograms(checkout, environment, () => undefined)).toEqual(sourcePrograms(checkout));
});

it("runs the sources when the code cannot be bundled", async () => {
  mkdirSync(join(directory, "local"));
  const printed: string[] = [];
  const programs = await openPrograms(directory, {}, (line) => void printed.push(line));
  expect(programs).toEqual(sourcePrograms(directory));
  expect(printed.join("\n")).toContain("so their sources run");
});
