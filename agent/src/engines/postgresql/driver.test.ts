import { connectPostgresql, postgresqlClient, scramVerifier } from "../../../../test/support/engine-clients.ts";
import { createEngineMachine, hasEngine } from "../../../../test/support/engine-machine.ts";
import { conformsToEngineDriver } from "../engine-conformance.ts";
import { createPostgresqlDriver } from "./driver.ts";

for (const version of ["17", "18"]) {
  conformsToEngineDriver({
    name: `postgresql ${version}`,
    skip: hasEngine("postgresql", version) ? undefined : "its node image is not made",
    machine: (settings) =>
      createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version, settings),
    verifierOf: scramVerifier,
    connect: postgresqlClient,
    connectPlain: (machine, options) => connectPostgresql(machine, { ...options, plain: true }),
    live: ["work_mem", "7MB"],
    atStart: ["max_connections", "60"],
  });
}
