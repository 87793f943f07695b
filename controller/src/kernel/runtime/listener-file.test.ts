import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readListenersFile, writeListenersFile } from "@holdfast/common/listeners-file.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { listenAt } from "@holdfast/common/open-listeners.ts";
import { expect, onTestFinished, test, vi } from "vitest";
import { createListenerReports, followListenerFile } from "./listener-reports.ts";

test("listeners that a process writes are announced, also after it opened others", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const directory = await mkdtemp(join(tmpdir(), "holdfast-listeners-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  expect(await readListenersFile(directory)).toEqual([]);
  const announced: (readonly string[])[] = [];
  const announceListeners = async (listeners: readonly string[]) => void announced.push(listeners);
  const reports = createListenerReports({ announceListeners }, silentLog);
  const following = followListenerFile({ process: "store", directory, reports, log: silentLog });
  onTestFinished(() => following.close());
  for (const host of ["127.0.0.1", "127.0.0.2"]) {
    const server = createServer();
    onTestFinished(() => void server.close());
    const port = await listenAt(server, { host, port: 0 });
    await writeListenersFile(directory);
    expect(await readListenersFile(directory)).toContain(`${host}:${port}`);
    server.close();
    await vi.waitFor(() => {
      vi.advanceTimersByTime(5_000);
      expect(announced.at(-1)).toContain(`${host}:${port}`);
    });
  }
  await writeFile(join(directory, "listeners"), `${"x".repeat(40_000)}\n10.0.0.1:1`);
  expect((await readListenersFile(directory)).join().length).toBeLessThanOrEqual(16 * 1024);
});
