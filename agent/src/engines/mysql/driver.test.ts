import { mysqlClient, mysqlVerifier, connectMysql } from "@holdfast/testing/engines/mysql-clients.ts";
import { conformsToEngineDriver } from "@holdfast/testing/engines/engine-conformance.ts";
import { createEngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { createMysqlDriver } from "./driver.ts";

const skip = await requireRecipes(import.meta.filename, "mysql");

conformsToEngineDriver({
  name: "mysql 9.7",
  skip,
  machine: (settings) => createEngineMachine(async (deps) => createMysqlDriver(deps), "mysql", "9.7", settings),
  verifierOf: mysqlVerifier,
  connect: mysqlClient,
  connectPlain: (machine, options) => connectMysql(machine, { ...options, plain: true }),
  refusals: {
    wrongPassword: /Access denied/,
    platformUser: /Access denied/,
    notAllowed: /ECONNRESET|EPIPE|closed|lost/,
    withoutTls: /Access denied/,
    mayNotWrite: /denied/,
  },
  live: ["sort_buffer_size", "524288"],
  atStart: ["max_connections", "77"],
});
