import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { connectPostgresql, postgresqlClient, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { conformsToEngineDriver } from "@holdfast/testing/engines/engine-conformance.ts";
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
    refusals: {
      wrongPassword: /password authentication failed/,
      platformUser: /pg_hba/,
      notAllowed: /pg_hba/,
      withoutTls: /no encryption/,
      mayNotWrite: /read-only transaction/,
    },
    live: ["work_mem", "7MB"],
    atStart: ["max_connections", "60"],
    console: {
      database: defaultDatabase,
      oneRow: "SELECT 1",
      twenty: "SELECT n FROM generate_series(1, 20) AS n",
      writing: "CREATE TABLE public.harmed ()",
      endless: "SELECT count(*) FROM generate_series(1, 1000000000)",
    },
  });
}
