import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { npmEnvironment } from "@holdfast/testing/servers/npm-environment.ts";
import { pythonEnvironment } from "@holdfast/testing/servers/python-environment.ts";
import { startTestTds, type TestTds } from "@holdfast/testing/servers/tds-front-end.ts";
import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, it } from "vitest";

const execute = promisify(execFile);
const installMs = 600_000;
const programMs = 180_000;
const tedious = "tedious@20.3.9";
const programs = join(import.meta.dirname, "..", "..", "testing", "src", "servers");

interface Step {
  readonly name: string;
  readonly value?: unknown;
  readonly error?: string;
}

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

  const environment = () => ({
    PATH: process.env["PATH"] ?? "",
    TDS_TARGET: JSON.stringify({
      host: "localhost",
      port: tds.server.port,
      user: tds.user,
      password: tds.password,
      database: "defaultdb",
      ca: join(directory, "ca.pem"),
    }),
  });

  /** Runs a program, and expects that the steps of `limits`, and no others, fail. */
  async function expectSteps(
    argv: readonly [string, string],
    more: Readonly<Record<string, string>>,
    count: number,
    limits: Readonly<Record<string, string>>,
  ): Promise<Map<string, unknown>> {
    const { stdout } = await execute(argv[0], [argv[1]], {
      env: { ...environment(), ...more },
      timeout: programMs,
      maxBuffer: 16 << 20,
    });
    const steps = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Step);
    const failed = steps.filter(({ error }) => error !== undefined);
    expect(
      failed.filter(({ name }) => !Object.hasOwn(limits, name)),
      "steps that failed",
    ).toEqual([]);
    expect(failed.map(({ name }) => name).sort()).toEqual(Object.keys(limits).sort());
    expect(steps.length).toBe(count);
    return new Map(steps.map(({ name, value }) => [name, value]));
  }

  const node = (program: string) => [process.execPath, join(programs, program)] as const;
  const packages = async (...names: string[]) => ({ TDS_PACKAGES: join(await npmEnvironment(...names), "..", "..") });

  it(
    "are Sequelize: sync, alter, introspection, changes of rows, errors and migrations",
    async () => {
      const modules = await packages("sequelize@6.37.8", tedious);
      const steps = await expectSteps(node("tds-sequelize.mjs"), modules, 31, {});
      expect(steps.get("unique")).toBe("SequelizeUniqueConstraintError");
      expect(steps.get("fk")).toBe("SequelizeForeignKeyConstraintError");
      expect(steps.get("upsert")).toEqual([3.25, false]);
      expect(steps.get("transaction")).toBe(2);
    },
    installMs,
  );

  it(
    "are Knex: the schema builder, introspection, changes of rows and migrations",
    async () => {
      const modules = await packages("knex@3.3.0", tedious);
      const steps = await expectSteps(node("tds-knex.mjs"), modules, 30, {});
      expect(steps.get("insert")).toEqual([{ id: 1, name: "Ann", rating: 1.5 }]);
      expect(steps.get("migrations")).toEqual([1, ["one"]]);
    },
    installMs,
  );

  it(
    "are TypeORM: synchronization, introspection and changes of rows",
    async () => {
      const modules = await packages("typeorm@1.1.1", "mssql@12.7.14", "reflect-metadata@0.2.2");
      await expectSteps(node("tds-typeorm.mjs"), modules, 25, {
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
      const steps = await expectSteps(argv, { FREETDSCONF: join(directory, "freetds.conf") }, 33, {
        checks: "the dialect lists no CHECK constraints of SQL Server",
        temp: "the dialect lists no temporary tables of SQL Server",
        comment: "fn_listextendedproperty is not supported",
        comments: "fn_listextendedproperty is not supported",
      });
      expect(steps.get("isolation")).toBe("SERIALIZABLE");
    },
    installMs,
  );
});
