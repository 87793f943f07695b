import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, describe, expect, it } from "vitest";
import { connectConsumer } from "@holdfast/testing/engines/change-consumer.ts";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createEngineMembers, replicationOf } from "@holdfast/testing/engines/engine-members.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { memberName } from "./members.ts";
import { becomePrimary } from "./replication.ts";

const password = "secret";
const verifier = scramVerifier(password);
const users = [
  create(EngineUserSchema, { username: "app_user", role: "admin", verifier }),
  create(EngineUserSchema, { username: "debezium", role: "readonly", verifier, replication: true }),
];

for (const version of ["17", "18"])
  describe.skipIf(!hasEngine("postgresql", version))(`two members of PostgreSQL ${version}`, () => {
    const members = createEngineMembers(version, { users, parameters: { wal_level: "logical" } });
    const { start, follow } = members;
    afterAll(() => members.remove());

    async function query<R>(member: EngineMachine, sql: string, user = "app_user"): Promise<R[]> {
      const client = await connectPostgresql(member, { user, password });
      try {
        return (await client.query<R & Record<string, unknown>>(sql)).rows;
      } finally {
        await client.end();
      }
    }

    const slotsOf = (member: EngineMachine) =>
      query<{ name: string }>(
        member,
        `SELECT slot_name AS name, failover, synced, temporary, wal_status FROM pg_replication_slots
         WHERE slot_type = 'logical' ORDER BY slot_name`,
      );
    const advance = (member: EngineMachine) =>
      query(
        member,
        "SELECT count(*) FROM pg_logical_slot_get_binary_changes('along', NULL, NULL, 'proto_version', '1', 'publication_names', 'changes')",
        "debezium",
      );

    async function untilSynchronized(primary: EngineMachine, replica: EngineMachine): Promise<void> {
      await waitUntil(
        "the slot is at the replica",
        async () => {
          await query(primary, "INSERT INTO orders DEFAULT VALUES");
          await advance(primary);
          const [slot] = await slotsOf(replica);
          return JSON.stringify(slot).includes('"synced":true,"temporary":false');
        },
        { withinMs: 60_000, everyMs: 500, describe: async () => `${replica.output()}\n${primary.output()}` },
      );
    }

    it("have the slots with FAILOVER on the next primary, and on the one after", async () => {
      const { primary: old, replica: next } = await members.startPair();
      await query(old, "CREATE TABLE orders (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY)");
      await query(old, "CREATE PUBLICATION changes FOR TABLE orders");
      const createSlot = (name: string, failover: boolean) =>
        query(
          old,
          `SELECT pg_create_logical_replication_slot('${name}', 'pgoutput', false, false, ${failover})`,
          "debezium",
        );
      await createSlot("along", true);
      await createSlot("behind", false);
      await untilSynchronized(old, next);
      expect((await slotsOf(next)).map(({ name }) => name)).toEqual(["along"]);

      const [row] = await query<{ id: number }>(old, "INSERT INTO orders DEFAULT VALUES RETURNING id");
      await old.stop();
      follow(old, next);
      await next.writeConfig();
      await becomePrimary(next.instance, next.signal);
      await replicationOf(next).admit(next.instance, next.signal);
      await waitUntil("consumers wait for the other member", async () => {
        const [setting] = await query<{ names: string }>(
          next,
          "SELECT current_setting('synchronized_standby_slots') AS names",
        );
        return setting?.names === memberName(members.numberOf(old));
      });
      const observed = await next.driver.observe(next.instance, next.signal);
      expect(observed.logicalSlots).toMatchObject({ usable: [{ name: "along", plugin: "pgoutput" }], lost: [] });
      // The old primary drops its own slots, since the new one's are to be there.
      await old.writeConfig();
      await replicationOf(old).rewind(old.instance, old.signal);
      await start(old);
      expect(await slotsOf(old)).not.toContainEqual(expect.objectContaining({ failover: true, synced: false }));

      // The slot's consumer waits for the member that may become the next primary.
      const consumer = await connectConsumer(next, { user: "debezium", password });
      consumer.start("along", "changes");
      await waitUntil("the row before the failover arrives", () => consumer.inserted.length > 0);
      expect(consumer.inserted.at(-1)).toEqual([String(row?.id)]);
      await consumer.end();
      await untilSynchronized(next, old);
    });
  });
