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
    machine.change({ storageBytes: 1n << 30n });
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
    expect(await reported()).toEqual({ role: "primary", logicalSlots: { usable: [], lost: [] } });
    await withSession(machine.instance, machine.signal, async (session) => {
      await session.rows("SELECT pg_create_logical_replication_slot('passing', 'pgoutput', true)");
      await session.rows("SELECT pg_create_logical_replication_slot('changes', 'pgoutput')");
      const [row] = await session.rows<{ database: string }>("SELECT current_database() AS database");
      expect(await reported()).toEqual({
        role: "primary",
        logicalSlots: { usable: [{ name: "changes", database: row?.database, plugin: "pgoutput" }], lost: [] },
      });
    });
  });

  test("are degraded before they lose their log, and after it, without replicas too", async () => {
    const observed = async () => {
      const { logicalSlots, checks } = await machine.driver.observe(machine.instance, machine.signal);
      return { logicalSlots, check: checks.find(({ name }) => name === "logical_slots") };
    };
    expect((await observed()).check).toEqual({ name: "logical_slots", status: "healthy", reason: "" });
    // The slot of a small disk retains 256 MB, in segments of 16 MB.
    await writeSegments(10);
    expect((await observed()).check).toMatchObject({
      status: "degraded",
      reason: expect.stringMatching(/retain half.*: changes\./),
    });
    await writeSegments(10);
    await withSession(machine.instance, machine.signal, (session) => session.rows("CHECKPOINT"));
    const { logicalSlots, check } = await observed();
    expect(logicalSlots).toMatchObject({ usable: [], lost: [{ name: "changes", lostReason: "wal_removed" }] });
    expect(check).toMatchObject({
      status: "degraded",
      reason: expect.stringMatching(/^Lost logical slots: changes\./),
    });
    await withSession(machine.instance, machine.signal, (session) =>
      session.rows("SELECT pg_drop_replication_slot('changes')"),
    );
    expect(await observed()).toEqual({ logicalSlots: { usable: [], lost: [] }, check: undefined });
  });

  const writeSegments = (count: number) =>
    withSession(machine.instance, machine.signal, async (session) => {
      for (let written = 0; written < count; written += 1)
        await session.rows("SELECT pg_logical_emit_message(true, 'test', 'x'), pg_switch_wal()");
    });
});
