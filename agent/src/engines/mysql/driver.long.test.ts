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
  connect: mysqlClient,
  connectPlain: (machine, options) => connectMysql(machine, { ...options, plain: true }),
  users: {
    verifierOf: mysqlVerifier,
    wrongPassword: /Access denied/,
    platformUser: /Access denied/,
    mayNotWrite: /denied/,
  },
  refusals: {
    notAllowed: /ECONNRESET|EPIPE|closed|lost/,
    withoutTls: /Access denied/,
  },
  live: ["sort_buffer_size", "524288"],
  atStart: ["max_connections", "77"],
  console: {
    database: "defaultdb",
    oneRow: "SELECT 1",
    twenty: "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20) SELECT i FROM n",
    writing: "DELETE FROM kv",
    endless:
      "SELECT COUNT(*) FROM information_schema.collations a, information_schema.collations b, information_schema.collations c, information_schema.collations d",
  },
});
