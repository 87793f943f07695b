import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import { startQueueWorkload } from "@holdfast/testing/api/queue-workload.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { crashesOf } from "@holdfast/testing/platform/platform-logs.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const run = promisify(execFile);
const mib = 1024 ** 2;

// Only root can mount a small file system.
describe.skipIf(!asRoot)("a full disk", () => {
  let disk: string;
  let platform: Platform;
  let services: Services;
  let first: RunningService;

  beforeAll(async () => {
    disk = mkdtempSync(join(tmpdir(), "holdfast-disk-"));
    await run("mount", ["-t", "tmpfs", "-o", "size=4g,mode=755", "small", disk]);
    platform = await startPlatform({ directory: join(disk, "data") });
    services = createServices(platform);
    first = await services.createRunning("first");
    await query("CREATE TABLE kept (turn int)");
  });
  afterAll(async () => {
    await platform?.remove();
    await run("umount", ["--lazy", disk]);
    rmSync(disk, { recursive: true, force: true });
  });

  const query = (sql: string) => queryOnce<{ round: number }>(platform, first.connection, first, sql);
  const filler = () => join(disk, "filler");

  /**
   * Fills the disk until `bytes` are free. Writes in pieces, because the platform allocates concurrently, and a piece
   * is written fully or not at all.
   */
  async function leave(bytes: number): Promise<void> {
    for (let filled = 0, piece = 1_024 * mib; piece >= mib; ) {
      const { bavail, bsize } = await statfs(disk);
      const fits = bavail * bsize - bytes >= piece;
      const args = ["--offset", String(filled), "--length", String(piece), filler()];
      if (fits && (await run("fallocate", args).then(() => true, orFull))) filled += piece;
      else piece /= 2;
    }
  }

  async function status(id: string): Promise<ServiceJson> {
    return expectStatus(await platform.rest.insist<ServiceJson>("GET", `/managed-services/${id}`), 200).json;
  }

  /** Resolves when the service runs; starts it again if it is in Error, as its user would. */
  async function recovers(id: string): Promise<void> {
    await waitUntil(
      "the service runs once there is space",
      async () => {
        const { status: state, operation } = await status(id);
        if (state === "Error" && operation === null) await platform.rest.post(`/managed-services/${id}/start`);
        return state === "Running" && operation === null;
      },
      { everyMs: 300, describe: () => services.describe(id) },
    );
  }

  it("rejects a new machine with the figures, and accepts it when space is free", async () => {
    await leave(1_024 * mib);
    const { id } = await services.create("second", { database_type: "valkey" });
    const failed = await waitUntil(
      "the service is in Error",
      async () => {
        const service = await status(id);
        return service.status === "Error" ? service : undefined;
      },
      { describe: () => services.describe(id) },
    );
    expect(failed.error?.message).toMatch(/disk .*GiB/);
    expect(failed.operation).toBeNull();
    const [create] = await services.operations(id);
    expect(create).toMatchObject({ type: "create", status: "failed", error: failed.error });
    await query("INSERT INTO kept VALUES (1)");

    rmSync(filler());
    await recovers(id);
    await services.delete(id);
  });

  it("without a free byte, for all programs concurrently, loses nothing", async () => {
    const body = { name: "third", database_type: "postgresql", plan_name: "tier-1", storage_size_gb: 1 };
    const created = platform.rest.insist<ServiceJson>("POST", "/managed-services", {
      body,
      headers: { "idempotency-key": "third" },
      // Nothing can be stored before space is free again.
      withinMs: 180_000,
    });
    // Awaited once space is free.
    created.catch(() => undefined);
    const queue = await startQueueWorkload(platform, first.service.id, "meanwhile");
    await leave(0);
    const written: number[] = [];
    for (let round = 100; round < 120; round += 1) {
      await query(`INSERT INTO kept SELECT ${round} FROM generate_series(1, 1)`).then(
        () => written.push(round),
        () => undefined,
      );
    }
    rmSync(filler());
    const { id } = expectStatus(await created, 202).json;
    await recovers(id);
    await recovers(first.service.id);
    const rows = await waitUntil("rows can be read", () => query("SELECT turn FROM kept"));
    expect(rows.map(({ round }) => round)).toEqual(expect.arrayContaining([1, ...written]));
    await queue.check();
    await services.delete(id);
    expect(crashesOf(platform.directory)).toEqual([]);
  }, 240_000);
});

/** Returns false if the error is a full disk; throws any other error. */
function orFull(error: Error): false {
  if (!error.message.includes("No space left on device")) throw error;
  return false;
}
