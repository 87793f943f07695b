import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createPostgresqlDriver } from "./driver.ts";
import { withSession } from "./session.ts";
import { consoleFilesMib } from "./temporary-files.ts";

const version = "17";
const gib = 2 ** 30;

test.each([
  ["a new service of 1 GiB", 1 * gib, 0.1 * gib, 16],
  ["a large disk", 1_000 * gib, 100 * gib, 256],
  ["a large disk that is nearly full", 100 * gib, 89.5 * gib, 64],
  ["a disk past the ceiling", 100 * gib, 91 * gib, 0],
])("statements of the console on %s have their share of its temporary files", (_, totalBytes, usedBytes, expected) => {
  expect(consoleFilesMib({ totalBytes, usedBytes })).toBe(expected);
  // The four of a service leave the disk below the level at which writes are blocked.
  expect(usedBytes + 4 * expected * 2 ** 20).toBeLessThan(Math.max(usedBytes + 1, totalBytes * 0.95));
});

describe.skipIf(!hasEngine("postgresql", version))("temporary files of console statements", () => {
  let machine: EngineMachine;
  const withStorage = (storageBytes: number) => {
    const { spec, ...instance } = machine.instance;
    return { ...instance, spec: { ...spec, storageBytes: BigInt(storageBytes) } };
  };
  const run = async (sql: string, storageBytes: number, bytesMax = 10_000) => {
    const names = { functions: ["generate_series", "count", "repeat"], types: [], qualified: [], relations: [] };
    const limits = { database: "defaultdb", rowsMax: 10, bytesMax, timeoutMs: 20_000 };
    return machine.driver.readOnlyQuery?.run(withStorage(storageBytes), { ...names, ...limits, sql }, machine.signal);
  };

  beforeAll(async () => {
    machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version);
    await machine.bringUp();
  });
  afterAll(() => machine?.remove());

  it("are limited by the storage and its free space, before they fill it", async () => {
    const fills = "SELECT count(*) FROM generate_series(1, 3000000000)";
    const four = await Promise.all(Array.from({ length: 4 }, () => run(fills, gib)));
    for (const result of four)
      expect(result).toMatchObject({ refusal: { message: expect.stringContaining("16 MiB") } });
    // The engine's own files are more than 90% of such a disk.
    expect(await run(fills, 16 * 2 ** 20)).toMatchObject({ refusal: { message: expect.stringContaining("too full") } });
    expect(await run("SELECT count(*) FROM generate_series(1, 10)", 16 * 2 ** 20)).toMatchObject({ rowCount: 1 });
  });

  it("leave room for the rows of a result, which is cut at its bytes", async () => {
    const wide = await run("SELECT repeat('x', 1000000) FROM generate_series(1, 1000)", gib, 8_000_000);
    expect(wide).toMatchObject({ truncated: true, rowCount: 7 });
  });

  it("of the platform's own statements are limited too", async () => {
    const fills = "SELECT count(*) FROM (SELECT n FROM generate_series(1, 30000000) AS n ORDER BY n DESC) AS sorted";
    const failed = withSession(withStorage(gib), machine.signal, (session) => session.rows(fills));
    await expect(failed).rejects.toMatchObject({ code: "53400" });
  });
});
