import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createPostgresqlDriver } from "./driver.ts";
import { withSession } from "./session.ts";

const version = "17";

describe.skipIf(!hasEngine("postgresql", version))("an observation of PostgreSQL", () => {
  let machine: EngineMachine;
  beforeAll(async () => {
    machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version);
    await machine.bringUp();
  });
  afterAll(() => machine?.remove());

  const observe = () => machine.driver.observe(machine.instance, AbortSignal.timeout(3_000));

  it("has a response of an engine that accepts the write", async () => {
    expect(await observe()).toMatchObject({
      responded: true,
      checks: [{ name: "liveness", status: "healthy" }, {}, {}, {}, {}],
    });
  });

  it("has a response of an engine whose write waits for a lock", async () => {
    await withSession(machine.instance, machine.signal, async (session) => {
      await session.rows("BEGIN; LOCK TABLE holdfast.heartbeat");
      expect(await observe()).toMatchObject({ responded: true, version: "", checks: [{ status: "unhealthy" }] });
    });
  });

  it("has no response of a stopped engine", async () => {
    await machine.stop();
    expect(await observe()).toMatchObject({
      responded: false,
      checks: [{ reason: "The engine does not listen for connections." }],
    });
  });
});
