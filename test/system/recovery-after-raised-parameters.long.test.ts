import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import { type RecoveredPlatform, recoverPlatform } from "@holdfast/testing/platform/recovered-platform.ts";
import { createServices, expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createReplicationUnderTest } from "./replication/replication-under-test.ts";

interface BackupJson {
  readonly id: string;
  readonly created_at: string;
}

const longMs = 240_000;
const environment = { HOLDFAST_FIRST_BACKUP_AFTER_S: "1", HOLDFAST_IDLE_LOG_AFTER_S: "2" };

/** A PostgreSQL of two nodes whose log needs more memory than its plan has, of which only the store remains. */
describe("a log of two nodes that was written under raised parameters and a larger plan", () => {
  const fixture = createReplicationUnderTest();
  let recovered: RecoveredPlatform | undefined;
  const describeIt = () => fixture.services.describe(fixture.main.service.id);
  const wait = { withinMs: longMs, everyMs: 200, describe: describeIt };

  beforeAll(() => fixture.start(environment), longMs);
  afterAll(async () => {
    await fixture.remove();
    await recovered?.remove();
  }, longMs);

  const settled = () => fixture.services.settled(fixture.main.service.id, "Running", longMs);
  async function resize(planName: string): Promise<void> {
    expectStatus(await fixture.platform.rest.post(fixture.path("/resize"), { plan_name: planName }), 202);
    await settled();
  }
  async function configure(parameters: Record<string, string | null>): Promise<void> {
    expectStatus(await fixture.platform.rest.patch(fixture.path("/configuration"), { parameters }), 200);
    await settled();
    await fixture.services.verb(fixture.main.service.id, "restart");
  }
  const query = async (sql: string) =>
    queryOnce(fixture.platform, fixture.main.connection, { password: fixture.main.password }, sql);

  it(
    "is recovered from the store alone with the memory that `recover` prints, and gets its replica again",
    async () => {
      const { id } = fixture.main.service;
      await fixture.stopWriting();
      const restorable = async () => (await fixture.services.get(id)).backups?.restorable ?? null;
      await waitUntil("the log continues from a base", async () => (await restorable()) !== null, wait);
      await fixture.addReplica();
      await query("CREATE TABLE noted AS SELECT 0 AS i");
      await resize("tier-4");
      await configure({ max_connections: "500", max_locks_per_transaction: "8000" });
      await query("INSERT INTO noted VALUES (1)");
      await configure({ max_connections: null, max_locks_per_transaction: null });
      const loweredAt = new Date().toISOString();
      await resize("tier-1");
      await query("INSERT INTO noted VALUES (2)");
      const written = new Date().toISOString();
      await waitUntil("the log is stored", async () => ((await restorable())?.to ?? "") > written, wait);

      const { name } = fixture.main.service;
      recovered = await recoverPlatform(fixture.platform, environment);
      const { platform, printed } = recovered;
      const [row] = printed;
      expect(printed).toMatchObject([{ name, outcome: "recovers" }]);
      const path = `/managed-services/${id}`;
      const { backups } = (await platform.rest.get<{ backups: readonly BackupJson[] }>(`${path}/backups`)).json;
      const base = backups.find((backup) => backup.id === row?.backupId);
      if (base === undefined) throw new Error("the base of the recovery is not listed");
      // After the lowering a base begins soon, and the replay after it needs no more memory than the plan has.
      expect(row?.replayMemoryGb).toBe(base.created_at > loweredAt ? undefined : 4);
      const services = createServices(platform);
      await services.settled(id, "Running", longMs);
      const { connection, password, service } = await services.open(id);
      const rows = "SELECT i FROM noted ORDER BY i";
      expect(await queryOnce(platform, connection, { password }, rows)).toEqual([{ i: 0 }, { i: 1 }, { i: 2 }]);
      expect(service).toMatchObject({ plan_name: "tier-1" });
      expectStatus(await platform.rest.post(`${path}/nodes`, { role: "replica" }), 202);
      const replica = await waitUntil(
        "its replica runs",
        async () => {
          const { nodes } = await services.get(id);
          return nodes.find((node) => node.role === "replica" && node.status === "Running");
        },
        wait,
      );
      const there = { ...connection, host: replica.hostname };
      expect(await queryOnce(platform, there, { password }, rows)).toEqual([{ i: 0 }, { i: 1 }, { i: 2 }]);
    },
    3 * longMs,
  );
});
