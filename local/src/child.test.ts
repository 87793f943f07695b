import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@holdfast/common/clock.ts";
import { afterAll, describe, expect, it } from "vitest";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { openBoundedLog } from "./bounded-log.ts";
import { type Child, startChild } from "./child.ts";

const directory = mkdtempSync(join(tmpdir(), "holdfast-child-"));
const socket = join(directory, "socket");
const logFile = join(directory, "child.log");
const children: Child[] = [];

afterAll(async () => {
  await Promise.all(children.map((child) => child.stop()));
  rmSync(directory, { recursive: true });
});

/** Serves its pid. */
const program = `
  const { rmSync } = require("node:fs");
  rmSync("${socket}", { force: true });
  require("node:http").createServer((_, answer) => answer.end(String(process.pid))).listen("${socket}");
`;

function ask(signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const probed = request({ socketPath: socket, signal, agent: false }, (answer) => {
      answer.once("data", (pid: Buffer) => resolve(Number(pid)));
    });
    probed.once("error", reject).end();
  });
}

describe("a child", () => {
  it("is killed and restarted when it hangs, and left alone while it responds", async () => {
    const hangsAfterMs = 60_000;
    /** Lead of the supervisor's clock: a busy machine is not a hang. */
    let aheadMs = 0;
    let answered = 0;
    const answers = async (signal: AbortSignal) => {
      await ask(signal);
      answered += 1;
    };
    const child = startChild(
      {
        name: "answering",
        launch: { command: process.execPath, args: ["-e", program] },
        env: {},
        ready: null,
        stopSignal: "SIGTERM",
        graceMs: 1_000,
        liveness: { probe: answers, intervalMs: 100, hangsAfterMs },
      },
      {
        log: openBoundedLog(logFile, { maxBytes: 1 << 20, filesMax: 1 }),
        print: () => undefined,
        monotonicMs: () => systemClock.monotonicMs() + aheadMs,
      },
    );
    children.push(child);
    await child.ready;
    const pid = () => ask(AbortSignal.timeout(1_000)).catch(() => 0);
    await expect.poll(pid).toBeGreaterThan(0);
    const first = await waitUntil("it tells its number", async () => (await pid()) || undefined);
    for (let step = 0; step < 4; step += 1) {
      aheadMs += hangsAfterMs / 2;
      const before = answered;
      await expect.poll(() => answered).toBeGreaterThan(before + 1);
    }
    expect(await waitUntil("it tells its number", async () => (await pid()) || undefined)).toBe(first);

    process.kill(first, "SIGSTOP");
    aheadMs += hangsAfterMs;
    await expect.poll(pid).not.toBeOneOf([0, first]);
    expect(readFileSync(logFile, "utf8")).toMatch(/answering has not responded for \d+ s and is killed/);
  });
});
