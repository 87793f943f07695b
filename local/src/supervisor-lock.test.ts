import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { identify } from "./recorded-process.ts";
import { runningSupervisor, takeSupervisorLock } from "./supervisor-lock.ts";

const temporary = () => mkdtempSync(join(tmpdir(), "holdfast-lock-"));

test("one process at a time runs an installation", () => {
  const directory = temporary();
  const lock = takeSupervisorLock(directory);
  expect(takeSupervisorLock(directory)).toEqual({ taken: false, pid: process.pid });
  expect(runningSupervisor(directory)?.pid).toBe(process.pid);
  if (lock.taken) lock.release();
  expect(runningSupervisor(directory)).toBeUndefined();
});

test.each([
  ["a process that is gone", { pid: 4_194_305, startTime: "1", bootId: "x" }],
  ["a process of an earlier boot", { ...identify(process.pid), bootId: "earlier" }],
  ["a process whose pid another one has now", { ...identify(process.pid), startTime: "1" }],
])("the lock of %s does not count", (_, holder) => {
  const directory = temporary();
  writeFileSync(join(directory, "supervisor.json"), JSON.stringify(holder));
  expect(takeSupervisorLock(directory).taken).toBe(true);
});
