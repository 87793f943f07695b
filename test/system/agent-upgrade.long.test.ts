import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFailed } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { type CommandLine, createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { lastLogLines } from "@holdfast/testing/platform/platform-logs.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { createReleaseDirectory } from "@holdfast/testing/platform/release-directory.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

interface Status {
  readonly release: string;
  readonly state: string;
  readonly reason?: string;
  readonly current?: number;
  readonly failed?: number;
}

/** Effect of `npm start` after an update of the platform on running machines. */
describe.skipIf(!asRoot)(
  `agents of another release${asRoot ? "" : " (skipped: needs root, for machines of an image)"}`,
  () => {
    const machines = 3;
    const releases = createReleaseDirectory();
    const environment: Record<string, string> = {
      HOLDFAST_AGENT_UPGRADE: "off",
      HOLDFAST_AGENT_CODE: releases.directory,
      HOLDFAST_AGENT_UPGRADE_SHARES: "50,100",
      HOLDFAST_AGENT_UPGRADE_SOAK_S: "1",
      HOLDFAST_WAITING_MACHINES: "2",
      HOLDFAST_WAITING_MACHINES_MAX: "2",
    };
    let platform: Platform;
    let shell: CommandLine;
    let writer: Client;
    const written = { rows: 0, failed: [] as string[], stop: false };
    let writing: Promise<void>;

    beforeAll(async () => {
      releases.put("0.2.0");
      platform = await startPlatform({ environment });
      shell = createCommandLine({});
      symlinkSync(platform.directory, join(shell.home, ".holdfast"));
      const { connection, password } = await createServices(platform).createRunning("written");
      writer = await openPostgresql(platform, connection, { password });
      await writer.query("CREATE TABLE written (n int PRIMARY KEY)");
      writing = write();
    }, 240_000);
    afterAll(async () => {
      written.stop = true;
      await writing;
      await writer?.end().catch(() => undefined);
      shell?.remove();
      await platform?.remove();
      releases.remove();
    });
    beforeEach(() => onTestFailed(() => console.log(lastLogLines(platform.directory, 40))));

    async function write(): Promise<void> {
      writer.on("error", (error) => written.failed.push(error.message));
      while (!written.stop) {
        await writer.query("INSERT INTO written VALUES ($1)", [written.rows]).then(
          () => (written.rows += 1),
          (error: Error) => written.failed.push(error.message),
        );
        // Time: the rate of the writer.
        await sleep(10);
      }
    }

    async function admin(line: string): Promise<string> {
      const { code, stdout, stderr } = await shell.runHere(["admin", "agents", ...line.split(" "), "--output", "json"]);
      if (code !== 0) throw new Error(stderr);
      return stdout;
    }
    const status = async () => JSON.parse(await admin("status")) as Status;
    const reached = (what: Partial<Status>) =>
      waitUntil(
        JSON.stringify(what),
        async () => {
          const now = await status();
          return Object.entries(what).every(([name, value]) => now[name as keyof Status] === value) && now;
        },
        { withinMs: 150_000, everyMs: 300, describe: () => admin("list") },
      );
    const processes = () =>
      platform
        .processes()
        .machines.map(({ id, keeper, engine }) => [id, keeper, engine])
        .sort();
    const agents = () => platform.processes().machines.map(({ agent }) => agent);

    /** The platform restarted with another release of the agent; machines run on. */
    async function released(...release: Parameters<typeof releases.put>): Promise<void> {
      await platform.killControlPlane();
      releases.put(...release);
      await platform.start();
    }

    it("halt at the first machine that rejects them, and a fixed release reaches all without a disruption", async () => {
      await waitUntil(
        "three machines run",
        () => {
          const found = platform.processes().machines;
          return (
            found.length === machines && found.every(({ keeper, agent }) => keeper !== undefined && agent !== undefined)
          );
        },
        { withinMs: 150_000 },
      );
      const before = processes();
      const old = agents();
      environment.HOLDFAST_AGENT_UPGRADE = "on";
      await released("0.3.0", (text, isMain) => (isMain ? `throw new Error("broken on purpose");${text}` : text));
      const halted = await reached({ release: "0.3.0", state: "Halted" });
      expect(halted.reason).toContain("broken on purpose");
      expect(halted.failed).toBe(1);
      const failed = JSON.parse(await admin("list --state failed")) as { machineId: string }[];
      expect(failed).toHaveLength(1);
      // The same release fails again: no other machine is touched.
      await admin("resume");
      await waitUntil(
        "it was tried again",
        async () => (await admin("list --state failed")).includes('"attempts": 2'),
        {
          withinMs: 150_000,
        },
      );
      await reached({ state: "Halted" });
      expect(agents()).toEqual(old);

      await released("0.3.1");
      // The controller dies midway, and is restarted.
      await waitUntil("one machine has it", async () => ((await status()).current ?? 0) > 0, { withinMs: 150_000 });
      for (const controller of platform.processes().controllers) killImmediately(controller);
      await reached({ release: "0.3.1", state: "Completed", current: machines });
      expect(processes()).toEqual(before);
      await waitUntil("the old ones have ended", () => agents().every((agent) => !old.includes(agent)));
      expect(await admin("list --state failed")).toMatch(/^\s*\[\s*\]\s*$/);
      written.stop = true;
      await writing;
      const { rows } = await writer.query("SELECT count(*)::int AS n FROM written");
      expect(rows[0].n).toBe(written.rows);
      expect(written.failed).toEqual([]);
    }, 600_000);
  },
);
