import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { createEngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { conformsToEngineDriver } from "@holdfast/testing/engines/engine-conformance.ts";
import { postgresqlSubject } from "@holdfast/testing/engines/postgresql-conformance.ts";
import { createPostgresqlDriver } from "./driver.ts";

for (const version of ["17", "18"]) {
  conformsToEngineDriver({
    ...postgresqlSubject,
    name: `postgresql ${version}`,
    skip: hasEngine("postgresql", version) ? undefined : "its node image is not made",
    machine: (settings) =>
      createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version, settings),
    console: {
      database: defaultDatabase,
      oneRow: "SELECT 1",
      twenty: "SELECT n FROM generate_series(1, 20) AS n",
      writing: "CREATE TABLE public.harmed ()",
      endless: "SELECT count(*) FROM generate_series(1, 1000000000)",
    },
  });
}
