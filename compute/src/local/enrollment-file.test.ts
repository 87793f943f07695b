import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  watch,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "@holdfast/testing/wait-until.ts";
import { writeEnrollment } from "./enrollment-file.ts";

const enrollment = { installationId: "test", controllers: ["127.0.0.1:1"], caFingerprint: "f", token: "t" };
let directory: string;
let state: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "enrollment-"));
  state = join(directory, "state");
  mkdirSync(state);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test("an enrollment appears in the agent's directory complete and owned by the agent", async () => {
  const seen = new Set<string>();
  const watcher = watch(state, (_, name) => void seen.add(name ?? ""));
  const own = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  const agent = own.uid === 0 ? { uid: 61_203, gid: 61_204 } : own;
  await writeEnrollment({ state, directory }, "m-1", enrollment, agent);
  writeFileSync(join(state, "last"), "");
  await until(() => seen.has("last"));
  watcher.close();
  expect([...seen].sort()).toEqual(["enrollment.json", "last"]);
  expect(statSync(join(state, "enrollment.json"))).toMatchObject(agent);
  expect(readdirSync(directory)).toEqual(["state"]);
});

test("a link at the enrollment's path is replaced, and its target does not change", async () => {
  const target = join(directory, "target");
  writeFileSync(target, "root's own");
  symlinkSync(target, join(state, "enrollment.json"));
  await writeEnrollment({ state, directory }, "m-1", enrollment, null);
  expect(readFileSync(target, "utf8")).toBe("root's own");
  expect(JSON.parse(readFileSync(join(state, "enrollment.json"), "utf8"))).toMatchObject({ machine_id: "m-1" });
});
