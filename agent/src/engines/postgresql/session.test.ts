import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scramVerifier } from "../../../../test/support/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "../../../../test/support/engine-machine.ts";
import { waitUntil } from "../../../../test/support/wait-until.ts";
import { createPostgresqlDriver } from "./driver.ts";
import { withSession } from "./session.ts";

describe.skipIf(!hasEngine("postgresql", "17"))("a session of the platform", () => {
  let machine: EngineMachine;

  beforeAll(async () => {
    const users = [create(EngineUserSchema, { username: "app_user", role: "admin", verifier: scramVerifier("x") })];
    machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", "17", { users });
    await machine.bootstrap();
    await machine.writeConfig();
    await machine.start();
    await machine.driver.ready(machine.instance, machine.signal);
  });
  afterAll(() => machine?.remove());

  it("takes with it what it was at when it was given up", async () => {
    const { instance, signal } = machine;
    const givenUp = new AbortController();
    await withSession(instance, signal, async (holder) => {
      const waiting = async () => (await holder.rows("SELECT 1 FROM pg_locks WHERE NOT granted")).length;
      await holder.rows("BEGIN; LOCK TABLE pg_authid IN EXCLUSIVE MODE");
      // Its own limits are far away: only that nobody waits for it any more can end it.
      const limits = { statementMs: 600_000 };
      const late = withSession(instance, givenUp.signal, (session) => session.rows("CREATE ROLE late"), limits);
      const refused = expect(late).rejects.toThrow("the deadline passed");
      await waitUntil("it waits for the lock", async () => (await waiting()) === 1);
      givenUp.abort(new Error("the deadline passed"));
      await refused;
      await waitUntil("the engine let go of it", async () => (await waiting()) === 0);
      await holder.rows("COMMIT");
      expect(await holder.rows("SELECT 1 FROM pg_roles WHERE rolname = 'late'")).toEqual([]);
    });
  });
});
