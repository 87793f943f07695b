import { rmSync } from "node:fs";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { reserveMillisecond } from "@holdfast/testing/reserve-millisecond.ts";
import { isFailoverCandidate } from "@holdfast/testing/platform/failover-candidate.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { batchOnce, openTds, rowsOnce } from "./tsql/tsql-service.ts";

const longMs = 240_000;
const skip = await requireRecipes(import.meta.filename, "tsql");

describe.skipIf(skip !== undefined)("a T-SQL service of two nodes", () => {
  let platform: Platform;
  let services: Services;
  let erp: RunningService;

  beforeAll(async () => {
    platform = await startPlatform({ environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "1" } });
    services = createServices(platform);
    erp = await services.createRunning("erp", { database_type: "tsql", node_count: 2, replication_mode: "sync" });
    const setUp = `CREATE TABLE Items (Id int IDENTITY PRIMARY KEY, Name nvarchar(50) UNIQUE);
      INSERT INTO Items (Name) VALUES (N'one')`;
    expect((await batchOnce(platform, erp, setUp)).errors).toEqual([]);
  }, longMs);
  afterAll(() => platform?.remove(), longMs);

  const path = (rest = "") => `/managed-services/${erp.service.id}${rest}`;
  const nodesNow = async () => {
    const { nodes } = await services.get(erp.service.id);
    return {
      primary: nodes.find(({ role }) => role === "primary"),
      replica: nodes.find(({ role }) => role === "replica"),
    };
  };

  it("reads on its replica, where writes are refused and new columns are found", async () => {
    const { replica } = await nodesNow();
    const client = await openTds(platform, erp, { host: replica?.hostname ?? "" });
    const read = async () => (await client.batch("SELECT * FROM Items")).sets[0];
    await waitUntil("the replica has the row", async () => (await read())?.length === 1);
    expect((await client.batch("INSERT INTO Items (Name) VALUES ('x')")).errors).toEqual([3906]);
    await batchOnce(platform, erp, "ALTER TABLE Items ADD Price money NULL");
    await waitUntil("the replica has the column", async () => "Price" in ((await read())?.[0] ?? {}));
    await client.close();
  });

  it(
    "is survived by a client that retries, with every acknowledged row, when its primary loses its data",
    async () => {
      const { primary, replica } = await nodesNow();
      await waitUntil("the primary counts on its replica", () =>
        isFailoverCandidate(platform.directory, erp.service.id, primary?.id ?? ""),
      );
      const acknowledged: string[] = [];
      const write = async (name: string) => {
        const insert = `IF NOT EXISTS (SELECT 1 FROM Items WHERE Name = '${name}') INSERT INTO Items (Name) VALUES ('${name}')`;
        await waitUntil(`${name} is written`, async () => {
          const result = await batchOnce(platform, erp, insert).catch(() => undefined);
          return result?.errors.length === 0;
        });
        acknowledged.push(name);
      };
      for (let i = 0; i < 10; i += 1) await write(`before ${i}`);
      const machine = platform.processes().machines.find(({ id }) => id === primary?.id);
      rmSync(`/proc/${machine?.engine}/cwd/global/pg_control`);
      killImmediately(machine?.engine ?? 0);
      for (let i = 0; i < 10; i += 1) await write(`after ${i}`);
      const { sets } = await batchOnce(platform, erp, "SELECT Name FROM Items");
      const found = new Set(sets[0]?.map(({ Name: name }) => name));
      expect(acknowledged.filter((name) => !found.has(name))).toEqual([]);
      expect((await nodesNow()).primary?.id).toBe(replica?.id);
    },
    longMs,
  );

  it(
    "is restored to a point in time, with the schemas of T-SQL clients and other passwords",
    async () => {
      await services.settled(erp.service.id, "Running", longMs);
      const window = async () => (await services.get(erp.service.id)).backups?.restorable;
      await waitUntil("the log continues from a base", async () => (await window()) != null, { withinMs: longMs });
      await batchOnce(platform, erp, "INSERT INTO Items (Name) VALUES ('kept')");
      const point = new Date(await reserveMillisecond()).toISOString();
      await batchOnce(platform, erp, "DELETE FROM Items");
      await waitUntil("the point can be restored", async () => ((await window())?.to ?? "") > point, {
        withinMs: longMs,
      });
      const body = { restore_point: point, target_service_name: "before", node_count: 1 };
      const { id } = expectStatus(await platform.rest.post<ServiceJson>(path("/backups/restore"), body), 202).json;
      await services.settled(id, "Running", longMs);
      const copy = await services.open(id);
      const { sets } = await batchOnce(platform, copy, "SELECT Name FROM ITEMS WHERE Name = 'KEPT'");
      expect(sets).toEqual([[{ Name: "kept" }]]);
      expect((await rowsOnce(platform, copy, "SELECT count(*)::int AS n FROM dbo.items"))[0]).toEqual({ n: 22 });
      await expect(openTds(platform, copy, { password: erp.password })).rejects.toThrow("Login failed");
    },
    longMs,
  );
});
