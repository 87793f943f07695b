import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectConsumer } from "@holdfast/testing/engines/change-consumer.ts";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { PutUserOptions } from "../contents-facets.ts";
import { createPostgresqlDriver } from "./driver.ts";

const password = "secret";
const verifier = scramVerifier(password);

for (const version of ["17", "18"])
  describe.skipIf(!hasEngine("postgresql", version))(`change data capture of PostgreSQL ${version}`, () => {
    let machine: EngineMachine;
    const put = (user: object, expected?: PutUserOptions["expected"]) =>
      machine.driver.users?.put(machine.instance, create(EngineUserSchema, user), machine.signal, { expected });
    const asOwner = async (...statements: string[]) => {
      const client = await connectPostgresql(machine, { user: "app_user", password });
      for (const statement of statements) await client.query(statement);
      await client.end();
    };
    const listed = async (name: string) =>
      (await machine.driver.users?.list(machine.instance, machine.signal))?.find(({ username }) => username === name);

    beforeAll(async () => {
      machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version, {
        users: [create(EngineUserSchema, { username: "app_user", role: "admin", verifier })],
        parameters: { wal_level: "logical" },
      });
      await machine.bringUp();
      await asOwner(
        "CREATE TABLE orders (id int PRIMARY KEY, note text)",
        "CREATE PUBLICATION changes FOR TABLE orders",
      );
    });
    afterAll(() => machine?.remove());

    it("streams inserts to a user with the attribute", async () => {
      const user = { username: "debezium", role: "readonly", verifier, replication: true };
      expect(await put(user, "absent")).toEqual({ changed: true, role: "readonly", replication: true });
      expect(await put(user, "absent")).toEqual({ changed: false, role: "readonly", replication: true });
      expect(await listed("debezium")).toMatchObject({ role: "readonly", replication: true });
      const consumer = await connectConsumer(machine, { user: "debezium", password });
      expect(await consumer.command("IDENTIFY_SYSTEM")).toMatch(/^\d+$/);
      expect(await consumer.command('CREATE_REPLICATION_SLOT "orders" LOGICAL pgoutput')).toBe("orders");
      consumer.start("orders", "changes");
      await asOwner("INSERT INTO orders VALUES (1, 'first'), (2, 'ö')");
      await waitUntil("both rows arrive", () => consumer.inserted.length === 2, { describe: () => machine.output() });
      expect(consumer.inserted).toEqual([
        ["1", "first"],
        ["2", "ö"],
      ]);
      await consumer.end();
    });

    it("admits no physical connection of that user", async () => {
      const physical = connectConsumer(machine, { user: "debezium", password, replication: "true" });
      await expect(physical).rejects.toThrow(/no pg_hba\.conf entry for replication connection/);
    });

    it("lets that user copy all files of the engine by BASE_BACKUP, which PostgreSQL ties to the attribute", async () => {
      const consumer = await connectConsumer(machine, { user: "debezium", password });
      await consumer.command("BASE_BACKUP (CHECKPOINT 'fast', WAL false)");
      expect(consumer.copiedBytes).toBeGreaterThan(20_000_000);
      await consumer.end();
    });

    it("is refused to users without the attribute", async () => {
      const consumer = connectConsumer(machine, { user: "app_user", password });
      await expect(consumer).rejects.toMatchObject({ code: "42501" });
    });

    it("begins and ends with a change of the attribute, which leaves all else", async () => {
      await asOwner("CREATE ROLE own LOGIN CONNECTION LIMIT 2");
      for (const [username, role] of [
        ["app_user", "admin"],
        ["debezium", "readonly"],
        ["own", "custom"],
      ] as const)
        for (const replication of [true, false]) {
          await put({ username, replication }, "present");
          expect(await put({ username, replication }, "present")).toEqual({ changed: false, role, replication });
          expect(await listed(username), username).toMatchObject({ role, replication });
          const { driver, instance, signal } = machine;
          const settled = (requested: boolean) =>
            driver.users?.settled(instance, { username, verifier: "", replication: requested }, signal);
          expect(await settled(replication)).toMatchObject({ matches: true });
          expect(await settled(!replication)).toMatchObject({ matches: false });
        }
      await asOwner("SELECT 1");
      await expect(connectConsumer(machine, { user: "debezium", password })).rejects.toMatchObject({ code: "42501" });
    });

    it("stays with a new password", async () => {
      await put({ username: "debezium", replication: true }, "present");
      await put({ username: "debezium", verifier: scramVerifier("second") }, "present");
      const consumer = await connectConsumer(machine, { user: "debezium", password: "second" });
      await consumer.end();
    });
  });
