import { execFileSync, spawnSync } from "node:child_process";
import { getPriority } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { setThreadPriorities } from "./thread-priority.ts";

test("every thread of the process gets the priority, including running ones", () => {
  const program = `
    import { readdirSync, readFileSync } from "node:fs";
    import { deflate } from "node:zlib";
    import { promisify } from "node:util";
    import { setThreadPriorities } from ${JSON.stringify(join(import.meta.dirname, "thread-priority.ts"))};
    await promisify(deflate)("starts the pool");
    setThreadPriorities(19);
    const stats = readdirSync("/proc/self/task").map((id) => readFileSync("/proc/self/task/" + id + "/stat", "latin1"));
    console.log(JSON.stringify(stats.map((stat) => Number(stat.slice(stat.lastIndexOf(")")).split(" ")[17]))));`;
  const argv = ["--input-type=module", "--eval", program];
  const priorities = JSON.parse(execFileSync(process.execPath, argv, { encoding: "utf8" })) as number[];
  expect(priorities.length).toBeGreaterThan(4);
  expect(new Set(priorities)).toEqual(new Set([19]));
});

test("an ended thread is skipped, and any other failure is thrown", () => {
  const { pid } = spawnSync("true");
  setThreadPriorities(getPriority(), [String(pid)]);
  expect(() => setThreadPriorities(99, [String(process.pid)])).toThrow(RangeError);
});
