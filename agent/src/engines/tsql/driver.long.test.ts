import { conformsToEngineDriver } from "@holdfast/testing/engines/engine-conformance.ts";
import { createEngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { postgresqlSubject } from "@holdfast/testing/engines/postgresql-conformance.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { createTsqlDriver } from "./driver.ts";

/** Without listeners of the front end, as in a drill: `tsql-service.test.ts` has its clients. */
conformsToEngineDriver({
  ...postgresqlSubject,
  name: "tsql 17, by PostgreSQL's protocol",
  skip: await requireRecipes(import.meta.filename, "tsql"),
  machine: (settings) => createEngineMachine(async (deps) => createTsqlDriver(deps), "tsql", "17", settings),
});
