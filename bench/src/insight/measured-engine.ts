import { create } from "@bufbuild/protobuf";
import { createPostgresqlDriver } from "@holdfast/agent/engines/postgresql/driver.ts";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";

const password = "a password";

/** Calls back with a PostgreSQL as agents run it, and its user's connection. */
export async function withPostgresql(
  measure: (machine: EngineMachine, connect: () => ReturnType<typeof connectPostgresql>) => Promise<void>,
): Promise<void> {
  const users = [create(EngineUserSchema, { username: "app_user", role: "admin", verifier: scramVerifier(password) })];
  const driver = async (deps: Parameters<typeof createPostgresqlDriver>[0]) => createPostgresqlDriver(deps);
  const machine = await createEngineMachine(driver, "postgresql", "17", { users });
  try {
    await machine.bringUp();
    await measure(machine, () => connectPostgresql(machine, { user: "app_user", password }));
  } finally {
    await machine.remove();
  }
}
