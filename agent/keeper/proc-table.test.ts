import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { firstThreadCpuMs } from "./proc-table.ts";

test("CPU time grows for a busy thread only, and an ended one has none", async () => {
  const child = spawn("sh", ["-c", "while :; do :; done"]);
  const pid = child.pid ?? 0;
  const before = firstThreadCpuMs(pid) ?? Number.NaN;
  await waitUntil("it works", async () => (firstThreadCpuMs(pid) ?? 0) >= before + 50);
  child.kill("SIGSTOP");
  let last: number | undefined;
  await waitUntil("it stands still", async () => {
    const now = firstThreadCpuMs(pid);
    const isSame = now === last;
    last = now;
    return isSame;
  });
  expect(firstThreadCpuMs(pid)).toBe(last);
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
  expect(firstThreadCpuMs(pid)).toBeUndefined();
});
