import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { npmEnvironment } from "@holdfast/testing/servers/npm-environment.ts";
import { pythonEnvironment } from "@holdfast/testing/servers/python-environment.ts";
import { startTestTds, type TestTds } from "@holdfast/testing/servers/tds-front-end.ts";
import { expectSteps, targetOf } from "@holdfast/testing/servers/tds-steps.ts";
import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, it } from "vitest";

const installMs = 600_000;
const tedious = "tedious@20.3.9";
const programs = join(import.meta.dirname, "..", "..", "testing", "src", "servers");

describe("object-relational mappers on the T-SQL front end", () => {
  let postgresql: TestPostgresql;
  let tds: TestTds;
  let directory: string;

  beforeAll(async () => {
    postgresql = await startTestPostgresql();
    directory = await mkdtemp(join(tmpdir(), "holdfast-orms-"));
  });
  afterAll(async () => {
    await postgresql?.stop();
    await rm(directory, { recursive: true, force: true });
  });
  // Each mapper has an empty database.
  beforeEach(async () => {
    tds = await startTestTds(postgresql.url);
    await writeFile(join(directory, "ca.pem"), tds.certificate);
  });
  afterEach(() => tds?.stop());

  /** Runs the steps of a program on the front end of the test. */
  const steps = (argv: readonly [string, ...string[]], more: Readonly<Record<string, string>>) =>
    [argv, { TDS_TARGET: targetOf(tds, join(directory, "ca.pem")), ...more }] as const;

  const node = (program: string) => [process.execPath, join(programs, program)] as const;
  const packages = async (...names: string[]) => ({ TDS_PACKAGES: join(await npmEnvironment(...names), "..", "..") });

  it(
    "are Sequelize: sync, alter, introspection, changes of rows, errors and migrations",
    async () => {
      const modules = await packages("sequelize@6.37.8", tedious);
      const found = await expectSteps(...steps(node("tds-sequelize.mjs"), modules), 31, {});
      expect(found.get("unique")).toBe("SequelizeUniqueConstraintError");
      expect(found.get("fk")).toBe("SequelizeForeignKeyConstraintError");
      expect(found.get("upsert")).toEqual([3.25, false]);
      expect(found.get("transaction")).toBe(2);
    },
    installMs,
  );

  it(
    "are Knex: the schema builder, introspection, changes of rows and migrations",
    async () => {
      const modules = await packages("knex@3.3.0", tedious);
      const found = await expectSteps(...steps(node("tds-knex.mjs"), modules), 30, {});
      expect(found.get("insert")).toEqual([{ id: 1, name: "Ann", rating: 1.5 }]);
      expect(found.get("migrations")).toEqual([1, ["one"]]);
    },
    installMs,
  );

  it(
    "are TypeORM: synchronization, introspection and changes of rows",
    async () => {
      const modules = await packages("typeorm@1.1.1", "mssql@12.7.14", "reflect-metadata@0.2.2");
      await expectSteps(...steps(node("tds-typeorm.mjs"), modules), 25, {
        renameColumn: "a DEFAULT has no name that DROP CONSTRAINT finds",
        changeColumn: "a DEFAULT has no name that DROP CONSTRAINT finds",
        dropColumn: "a DEFAULT has no name that DROP CONSTRAINT finds",
        dropDatabase: "NOCHECK CONSTRAINT is error 40510: constraints of PostgreSQL 17 cannot be disabled",
      });
    },
    installMs,
  );

  it(
    "are SQLAlchemy with pymssql: introspection, changes of rows, savepoints and levels of isolation",
    async () => {
      const environmentOf = await pythonEnvironment(["SQLAlchemy==2.1.9", "pymssql==2.4.6"]);
      const configuration = `[holdfast]
host = localhost
tds version = 7.4
encryption = require
ca file = ${join(directory, "ca.pem")}
check certificate hostname = yes
client charset = UTF-8
`;
      await writeFile(join(directory, "freetds.conf"), configuration);
      const argv = [join(environmentOf, "python3"), join(programs, "tds_sqlalchemy.py")] as const;
      const found = await expectSteps(...steps(argv, { FREETDSCONF: join(directory, "freetds.conf") }), 33, {
        checks: "the dialect lists no CHECK constraints of SQL Server",
        temp: "the dialect lists no temporary tables of SQL Server",
        comment: "fn_listextendedproperty is not supported",
        comments: "fn_listextendedproperty is not supported",
      });
      expect(found.get("isolation")).toBe("SERIALIZABLE");
    },
    installMs,
  );
});
