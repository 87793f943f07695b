import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { EngineBusy } from "../engine-errors.ts";
import { createPostgresqlDriver } from "./driver.ts";

const version = "17";

describe.skipIf(!hasEngine("postgresql", version))("a console query while clients use all connections", () => {
  let machine: EngineMachine;
  const clients: pg.Client[] = [];
  const open = async () => clients.push(await connectPostgresql(machine, { user: "app_user", password: "secret" }));
  const query = () => {
    const names = { functions: [], types: [], qualified: [], relations: [] };
    const limits = { database: "defaultdb", rowsMax: 10, bytesMax: 1_000, timeoutMs: 5_000 };
    return machine.driver.readOnlyQuery?.run(
      machine.instance,
      { ...names, ...limits, sql: "SELECT 1" },
      machine.signal,
    );
  };

  beforeAll(async () => {
    machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version, {
      users: [create(EngineUserSchema, { username: "app_user", role: "admin", verifier: scramVerifier("secret") })],
      parameters: { max_connections: "20" },
    });
    await machine.bringUp();
  });
  afterAll(async () => {
    for (const client of clients) await client.end();
    await machine?.remove();
  });

  it("is busy, which does not count as a refusal of its SQL", async () => {
    expect(await query()).toMatchObject({ rowCount: 1 });
    const full = async () => {
      for (;;) await open();
    };
    await expect(full()).rejects.toMatchObject({ code: "53300" });
    await expect(query()).rejects.toThrow(EngineBusy);
  });
});
