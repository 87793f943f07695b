import { rmSync } from "node:fs";
import { connect } from "node:net";
import { createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { isFailoverCandidate } from "@holdfast/testing/platform/failover-candidate.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { createRandom } from "@holdfast/testing/random.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type ReplicatedShop, startReplicatedShop } from "./mysql/replicated-shop.ts";

const longMs = 240_000;
const targetCount = 8;
const skip = await requireRecipes(import.meta.filename, "mysql");

describe.skipIf(skip !== undefined)("any second of a MySQL of two nodes", () => {
  let fixture: ReplicatedShop;

  beforeAll(async () => {
    fixture = await startReplicatedShop({
      environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "1", HOLDFAST_IDLE_LOG_AFTER_S: "3" },
    });
  }, longMs);
  afterAll(() => fixture?.remove(), longMs);

  const restorable = async () => (await fixture.services.get(fixture.shop.service.id)).backups?.restorable ?? null;
  const reaches = (time: number) =>
    waitUntil("the log of the time is archived", async () => ((await restorable())?.to ?? "") > iso(time), {
      withinMs: longMs,
      describe: () => fixture.services.describe(fixture.shop.service.id),
    });
  const iso = (ms: number) => new Date(ms).toISOString();

  it(
    "is archived through a killed engine, a switchover and a failover",
    async () => {
      await reaches(Date.now());
      await fixture.writesContinue();
      const first = await fixture.rolesNow();
      killImmediately(fixture.engineOf(first.primary));
      await fixture.writesContinue();
      await fixture.follows(first.replica);
      const switched = await fixture.platform.rest.post(fixture.path(`/nodes/${first.replica}/failover`), {});
      expectStatus(switched, 202);
      await fixture.services.settled(fixture.shop.service.id, "Running");
      await fixture.writesContinue();
      await fixture.follows(first.primary);
      const { primary } = await fixture.rolesNow();
      expect(primary).toBe(first.replica);
      await waitUntil("the primary counts on its replica", () =>
        isFailoverCandidate(fixture.platform.directory, fixture.shop.service.id, primary),
      );
      const engine = fixture.engineOf(primary);
      rmSync(`/proc/${engine}/cwd/mysql.ibd`);
      killImmediately(engine);
      await waitUntil("the replica is the primary", async () => (await fixture.rolesNow()).primary === first.primary);
      await fixture.writesContinue();
      await fixture.stopWriting();
      await reaches(Date.now());
    },
    2 * longMs,
  );

  it(
    "has every row that was acknowledged until then, and no later one",
    async () => {
      const { written } = fixture;
      const random = createRandom(7);
      const window = await restorable();
      const from = Math.max(Date.parse(window?.from ?? ""), written[0]?.acknowledgedAt ?? 0);
      const to = written.at(-1)?.acknowledgedAt ?? 0;
      expect(to).toBeGreaterThan(from);
      for (let at = 0; at < targetCount; at += 1) {
        const target = Math.floor(from + random.next() * (to - from));
        const rows = await rowsAt(target, `then-${at}`);
        // Times are in milliseconds: within the target's own one the order is unknown.
        const missing = written.filter(({ n, acknowledgedAt }) => acknowledgedAt < target && !rows.has(n));
        const early = written.filter(({ n, startedAt }) => startedAt > target && rows.has(n));
        expect({ target, missing, early }).toEqual({ target, missing: [], early: [] });
      }
    },
    targetCount * 60_000,
  );

  async function rowsAt(target: number, target_service_name: string): Promise<ReadonlySet<number>> {
    const { platform, services } = fixture;
    const body = { restore_point: iso(target), target_service_name };
    const restored = await platform.rest.post<ServiceJson>(fixture.path("/backups/restore"), body);
    const { id } = expectStatus(restored, 202).json;
    await services.settled(id, "Running", longMs);
    const { connection, password } = await services.open(id);
    const { host, port, ca_certificate: ca } = connection;
    const stream = connect({ host: await addressOf(platform, host), port });
    const ssl = { ca, verifyIdentity: true };
    const client = await createConnection({ host, user: "app_user", password, database: "defaultdb", stream, ssl });
    const [rows] = await client.query("SELECT n FROM ledger");
    client.destroy();
    await platform.rest.delete(`/managed-services/${id}?skip_final_backup=true`);
    return new Set((rows as { n: number }[]).map(({ n }) => n));
  }
});
