import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addressOf, queryOnce } from "@holdfast/testing/api/clients.ts";
import { type ChangeConsumer, connectConsumer } from "@holdfast/testing/engines/change-consumer.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createFailoverUnderTest } from "./replication/failover-under-test.ts";
import { createReplicationUnderTest } from "./replication/replication-under-test.ts";

interface SlotEvents {
  readonly events: readonly { readonly data: { readonly slot: string; readonly to_node_id: string } }[];
}

/** Slots of change capture, through automatic failovers of a primary whose machine hangs and is then killed. */
describe("logical slots of a PostgreSQL whose primary fails", () => {
  const fixture = createReplicationUnderTest();
  const failover = createFailoverUnderTest(fixture);
  const { roles, failsOver, pauseMachine, processesOf, untilReplicaCounts } = failover.failures;
  let password: string;

  beforeAll(async () => {
    await fixture.start();
    const configuration = { parameters: { wal_level: "logical" } };
    expectStatus(await fixture.platform.rest.patch(fixture.path("/configuration"), configuration), 200);
    await fixture.services.verb(fixture.main.service.id, "restart");
    await failover.begin();
    const user = { username: "debezium", role: "readonly", replication: true };
    expectStatus(await fixture.platform.rest.post(fixture.path("/database-users"), user), 201);
    const reveal = fixture.path("/database-users/debezium/reveal-password");
    ({ password } = expectStatus(await fixture.platform.rest.post<{ password: string }>(reveal), 200).json);
  });
  afterAll(async () => {
    await failover.end();
    await fixture.remove();
  });

  function hangUntilKilled(machineId: string): () => void {
    const { launcher } = processesOf(machineId);
    pauseMachine(machineId);
    return () => void killImmediately(launcher);
  }

  const onPrimary = async (sql: string) => fixture.queryNode((await roles()).primary, sql);

  /** A row's id, once the replica has it: the failover is of asynchronous replicas. */
  async function insertOrder(): Promise<string> {
    const [row] = await onPrimary("INSERT INTO orders DEFAULT VALUES RETURNING id");
    const { replica } = await roles();
    await waitUntil("the replica has the row", async () => {
      const rows = await fixture.queryNode(replica, `SELECT FROM orders WHERE id = ${row?.["id"]}`);
      return rows.length === 1;
    });
    return String(row?.["id"]);
  }

  /** A consumer as Debezium, at the primary. */
  async function connect(): Promise<ChangeConsumer> {
    const { connection } = fixture.main;
    const spec = { address: await addressOf(fixture.platform, connection.host), port: connection.port };
    const endpoint = { ca: connection.ca_certificate, serverName: connection.host, instance: { spec } };
    return connectConsumer(endpoint, { user: "debezium", password });
  }

  /** Resolves once the replica could continue the slot. Each row is confirmed, which takes its consumer forward. */
  async function untilSynchronized(): Promise<void> {
    await untilReplicaCounts();
    await waitUntil(
      "the slot is at the replica",
      async () => {
        await onPrimary("INSERT INTO orders DEFAULT VALUES");
        const login = { user: "debezium", password };
        const advance = "SELECT pg_replication_slot_advance('along', pg_current_wal_lsn())";
        await queryOnce(fixture.platform, fixture.main.connection, login, advance);
        const { replica } = await roles();
        const found = await fixture.queryNode(
          replica,
          "SELECT FROM pg_replication_slots WHERE slot_name = 'along' AND synced AND NOT temporary",
        );
        return found.length === 1;
      },
      { withinMs: 120_000, everyMs: 500 },
    );
  }

  const lostSlots = async () => {
    const path = fixture.path("/events?type=service.slot_lost");
    return expectStatus(await fixture.platform.rest.get<SlotEvents>(path), 200).json.events;
  };

  it("exist on the new primary if they have FAILOVER, and an event names each other slot", async () => {
    await onPrimary("CREATE TABLE orders (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY)");
    await onPrimary("CREATE PUBLICATION changes FOR TABLE orders");
    const first = await connect();
    expect(await first.command('CREATE_REPLICATION_SLOT "along" LOGICAL pgoutput (FAILOVER)')).toBe("along");
    expect(await first.command('CREATE_REPLICATION_SLOT "behind" LOGICAL pgoutput')).toBe("behind");
    await first.end();
    await untilSynchronized();
    const { replica } = await roles();
    const before = await insertOrder();
    await failsOver("machine hangs, then killed", hangUntilKilled);
    await waitUntil("the lost slot is announced", async () => (await lostSlots()).length > 0);
    expect(await lostSlots()).toMatchObject([{ data: { slot: "behind", to_node_id: replica } }]);
    const after = await insertOrder();
    const consumer = await connect();
    consumer.start("along", "changes");
    await waitUntil("the row after the failover arrives", () => consumer.inserted.some(([id]) => id === after));
    expect(consumer.inserted.map(([id]) => id)).toContain(before);
    await consumer.end();
  });

  it("exist again after a failover back to the first primary", async () => {
    await untilSynchronized();
    const before = await insertOrder();
    await failsOver("the next primary too", hangUntilKilled);
    const consumer = await connect();
    consumer.start("along", "changes");
    await waitUntil("the row before the failover arrives", () => consumer.inserted.some(([id]) => id === before));
    await consumer.end();
    expect((await lostSlots()).map(({ data }) => data.slot)).toEqual(["behind"]);
  });
});
