import { existsSync, symlinkSync } from "node:fs";
import { rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRows } from "../faults/acknowledged-writer.ts";
import type { OperationJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { fillDisk, freeBytes } from "@holdfast/testing/machines/fill-disk.ts";
import { type CommandLine, createCommandLine, type CommandResult } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { createServices, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { pathInside } from "@holdfast/testing/machines/machine-inside.ts";

const mib = 1024 ** 2;
const longMs = 300_000;

// Only root gives each machine a separate disk that can be full.
describe.skipIf(!asRoot)("a user with the command line alone, whose service's disk is full", () => {
  let platform: Platform;
  let services: Services;
  let shell: CommandLine;
  let id: string;
  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    shell = createCommandLine({});
    symlinkSync(platform.directory, join(shell.home, ".holdfast"));
    await done("services create orders --type postgresql --storage-gb 1 --allow 127.0.0.0/8 --wait");
    ({ id } = await service());
    expect(await sql("CREATE TABLE orders (line text STORAGE EXTERNAL)")).toMatchObject({ code: 0 });
  }, longMs);
  afterAll(async () => {
    shell?.remove();
    await platform?.remove();
  });

  const holdfast = (line: string): Promise<CommandResult> => shell.runHere(line.split(" "));
  async function done(line: string): Promise<string> {
    const ran = await holdfast(line);
    if (ran.code !== 0) throw new Error(`${line}: ${ran.code} ${ran.stderr}\n${await services.describe(id)}`);
    return ran.stdout;
  }
  const jsonOf = async <T>(line: string): Promise<T> => JSON.parse(await done(`--output json ${line}`)) as T;
  const service = () => jsonOf<ServiceJson>("services get orders");
  /** Runs a statement by psql, as `services connect` starts it. */
  const sql = (statement: string) => shell.run(["services", "connect", "orders", "--", "-Xqtc", statement]);
  const insert = () => sql("INSERT INTO orders VALUES ('one more')");
  /** Some MB a transaction, until one is rejected. */
  const insertAll = () =>
    sql(`DO $$ BEGIN LOOP
      INSERT INTO orders SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 150000);
      COMMIT;
    END LOOP; END $$`);
  /** Percentages of the disk by its events, which have a line each. */
  async function percentsOf(type: string): Promise<number[]> {
    const lines = (await done(`--output json services events orders --type ${type}`)).split("\n").filter(Boolean);
    return lines.map((line) => (JSON.parse(line) as { data: { used_pct: number } }).data.used_pct);
  }

  const options = { everyMs: 300, describe: () => services.describe(id) };
  const machine = () => platform.processes().machines[0];
  const dataDirectory = () => pathInside(machine()?.agent, "/data");
  const reserve = () => join(dataDirectory(), "reserve");
  const fillUp = () => fillDisk(dataDirectory());
  const storageReason = async () =>
    (await service()).health.checks.find(({ name }) => name === "storage")?.reason ?? "";
  const untilWritable = (what: string) => waitUntil(what, async () => (await insert()).code === 0, options);

  it(
    "is informed while it fills, rejected with text, and recovers it by deletes",
    async () => {
      expect((await insertAll()).stderr).toMatch(/terminating connection|read-only transaction|pg_hba.conf/);
      await waitUntil(
        "its event is emitted",
        async () => (await percentsOf("service.writes_blocked")).length > 0,
        options,
      );
      // Removed segments of its log may have freed a little space once more.
      const refused = await waitUntil(
        "it stays refused",
        async () => {
          const { code, stderr } = await insert();
          if (code === 0) await insertAll();
          return code === 0 ? undefined : stderr;
        },
        options,
      );
      expect(refused).toMatch(/cannot execute INSERT in a read-only transaction|no pg_hba.conf entry/);
      expect(Math.max(...(await percentsOf("service.storage_low")))).toBe(90);
      await waitUntil(
        "the remedy is reported",
        async () => /at least 9\d% full.*enable writes for 15 minutes/.test(await done("services get orders")),
        options,
      );
      await fillUp();
      expect(existsSync(reserve())).toBe(true);
      await waitUntil("no connection is admitted", async () => /The disk is full/.test(await storageReason()), options);

      // An engine that ends now recovers with the reserve, which clients do not get for that.
      const engine = machine()?.engine ?? 0;
      killImmediately(engine);
      await waitUntil("the engine has recovered", () => ![undefined, engine].includes(machine()?.engine), options);
      await waitUntil("the service is Running", async () => (await service()).status === "Running", options);
      expect(existsSync(reserve())).toBe(false);
      expect((await insert()).code).not.toBe(0);

      await waitUntil(
        "writes are enabled",
        async () => (await holdfast("services enable-writes orders")).code === 0,
        options,
      );
      await waitUntil("data is deleted", async () => (await sql("TRUNCATE orders")).code === 0, options);
      await rm(join(dataDirectory(), "filler"));
      await untilWritable("writes are taken");
      await waitUntil(
        "its user sees that it has recovered",
        async () => (await service()).health.status === "healthy",
        options,
      );
      await waitUntil("the reserve is restored", () => existsSync(reserve()), options);
      expect(await holdfast("services enable-writes orders")).toMatchObject({
        code: 5,
        stderr: expect.stringContaining("Writes are not blocked"),
      });
    },
    longMs,
  );

  it(
    "recovers by stop, expansion and start, at 100%",
    async () => {
      await fillUp();
      await done("services stop orders --wait");
      await done("services expand orders --storage-gb 2 --wait");
      expect(await service()).toMatchObject({ status: "Stopped", storage_size_gb: 2 });
      await done("services start orders --wait");
      await untilWritable("writes are taken");
      expect(await freeBytes(dataDirectory())).toBeGreaterThan(512 * mib);
    },
    longMs,
  );

  it(
    "recovers by expansion alone, even when agent and controllers are killed midway",
    async () => {
      await fillUp();
      // Writes are not rejected yet, because the 15 minutes for which deletes were enabled are not over.
      await waitUntil("the disk is reported full", async () => /full/.test(await storageReason()), options);
      await done("services expand orders --storage-gb 3");
      for (const pid of platform.processes().controllers) killImmediately(pid);
      killImmediately(machine()?.agent ?? 0);
      await waitUntil("controllers answer", async () => (await holdfast("services get orders")).code === 0, options);
      await done("services wait orders");
      await untilWritable("writes are taken");
      await waitUntil("the expansion is over", async () => (await service()).operation === null, options);
      expect(await service()).toMatchObject({ status: "Running", storage_size_gb: 3 });
      const [expanded] = await jsonOf<OperationJson[]>("services operations orders");
      expect(expanded).toMatchObject({ type: "expand", status: "completed", error: null });
    },
    longMs,
  );

  it(
    "loses no write while its disk grows and any process is killed at any time",
    async () => {
      const stop = new AbortController();
      const writer = await writeRows(platform, await services.open(id), stop.signal);
      const moments: readonly (readonly [what: string, kill: () => void])[] = [
        ["controllers", () => platform.processes().controllers.forEach((pid) => killImmediately(pid))],
        ["the agent", () => killImmediately(machine()?.agent ?? 0)],
        ["the keeper, and with it the machine", () => killImmediately(machine()?.keeper ?? 0)],
      ];
      try {
        let sizeGb = 3;
        for (const [, kill] of moments) {
          sizeGb += 1;
          await done(`services expand orders --storage-gb ${sizeGb}`);
          kill();
          await waitUntil(
            `it has ${sizeGb} GB`,
            async () => {
              const { status, operation, storage_size_gb } = await service();
              return status === "Running" && operation === null && storage_size_gb === sizeGb;
            },
            options,
          );
          const { blocks, bsize } = await statfs(dataDirectory());
          // Its file system needs space for its own log.
          expect(blocks * bsize).toBeGreaterThan((sizeGb * 1024 - 160) * mib);
        }
        const written = writer.acknowledged;
        await waitUntil("rows are written", () => writer.acknowledged > written, options);
      } finally {
        stop.abort();
        await writer.done;
      }
      expect(await writer.missing()).toEqual([]);
      const operations = await jsonOf<OperationJson[]>("services operations orders");
      expect(operations.filter(({ status }) => status !== "completed")).toEqual([]);
    },
    longMs,
  );
});
