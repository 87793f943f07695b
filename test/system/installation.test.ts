import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import { preparedDisks, type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { isAlive } from "@holdfast/testing/platform/platform-processes.ts";
import { createServices, type RunningService } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { tryStart } from "./installation/try-start.ts";

describe("an installation", () => {
  let platform: Platform;
  let service: RunningService;

  beforeAll(async () => {
    platform = await startPlatform({ environment: preparedDisks });
    service = await createServices(platform).createRunning("first");
    await queryOnce(platform, service.connection, service, "CREATE TABLE kept AS SELECT 7 AS answer");
  });
  afterAll(() => platform?.remove());

  it("rejects a second start while it runs, with the pid", async () => {
    const { code, output } = await tryStart(["up", "--data", platform.directory]);
    expect(code).toBe(1);
    expect(output).toMatch(/in use.*process \d+/);
  });

  it("names a busy port and its flag", async () => {
    const busyPort = new URL(platform.admin.base_url).port;
    const otherDirectory = join(platform.directory, "elsewhere");
    const { code, output } = await tryStart(["up", "--data", otherDirectory, "--api-port", busyPort]);
    expect(code).toBe(1);
    expect(output).toMatch(new RegExp(`port ${busyPort} is busy.*--api-port`));
  });

  it("leaves no process when it is stopped, and continues where it was", async () => {
    const before = readFileSync(join(platform.directory, "admin.json"), "utf8");
    const { all } = platform.processes();
    await platform.stop();
    expect(platform.processes().all).toEqual([]);
    expect(all.filter(isAlive)).toEqual([]);
    expect(readFileSync("/proc/mounts", "utf8")).not.toContain(platform.directory);

    await platform.start();
    expect(readFileSync(join(platform.directory, "admin.json"), "utf8")).toBe(before);
    const rows = await waitUntil("the engine answers", () =>
      queryOnce(platform, service.connection, service, "SELECT answer FROM kept"),
    );
    expect(rows).toEqual([{ answer: 7 }]);
  });
});
