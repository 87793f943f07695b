import { create } from "@bufbuild/protobuf";
import { ReplicationSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createPostgresqlDriver } from "./driver.ts";
import { withSession } from "./session.ts";

const version = "17";

describe.skipIf(!hasEngine("postgresql", version))("logical slots of a primary", () => {
  let machine: EngineMachine;
  beforeAll(async () => {
    machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version, {
      parameters: { wal_level: "logical" },
    });
    await machine.bringUp();
  });
  afterAll(() => machine?.remove());

  test("are reported for a service with replicas, except temporary ones", async () => {
    const { nodeId } = machine.instance.spec;
    const replication = create(ReplicationSchema, { primaryNodeId: nodeId });
    const instance = { ...machine.instance, spec: { ...machine.instance.spec, replication } };
    const reported = async () => {
      const { replication: state, logicalSlots } = await machine.driver.observe(instance, machine.signal);
      return { ...state, logicalSlots };
    };
    expect(await reported()).toEqual({ role: "primary", logicalSlots: [] });
    await withSession(machine.instance, machine.signal, async (session) => {
      await session.rows("SELECT pg_create_logical_replication_slot('passing', 'pgoutput', true)");
      await session.rows("SELECT pg_create_logical_replication_slot('changes', 'pgoutput')");
      const [row] = await session.rows<{ database: string }>("SELECT current_database() AS database");
      expect(await reported()).toEqual({
        role: "primary",
        logicalSlots: [{ name: "changes", database: row?.database, plugin: "pgoutput" }],
      });
    });
  });
});
