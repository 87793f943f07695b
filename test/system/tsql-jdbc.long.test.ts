import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { missingProgram, runHostProgram } from "@holdfast/testing/servers/host-program.ts";
import { mavenJar } from "@holdfast/testing/servers/maven-jar.ts";
import { startTestTds, type TestTds } from "@holdfast/testing/servers/tds-front-end.ts";
import { expectSteps } from "@holdfast/testing/servers/tds-steps.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

const setUpMs = 600_000;
const storePassword = "changeit";
const program = join(import.meta.dirname, "..", "..", "testing", "src", "servers", "TdsJdbc.java");
const missing = await missingProgram("mvn", "java", "javac");

/** Steps that need procedures of the system which the front end does not have. */
const limits = {
  scrollable: "sp_cursoropen is missing: rows are read once, forward",
  updatable: "sp_cursoropen is missing: rows are read once, forward",
  getTablePrivileges: "sp_table_privileges is missing",
  getColumnPrivileges: "sp_column_privileges is missing",
  "parameter metadata": "sp_describe_undeclared_parameters is missing",
};

/** Values of steps that both drivers read in the same way. */
const values = {
  connect: "Microsoft SQL Server",
  "wrong password": 18456,
  "generated keys": [1, 1],
  "failing batch": [2627, 1],
  errors: [208, 8134, 2627, 2812, 50100],
  transaction: [50, 100],
  procedure: ["ü", 7, 42],
  "named parameters": 8,
  "several results": [1, 1, 2, 3],
  getPrimaryKeys: [
    ["B", 1, "pk_kids"],
    ["A", 2, "pk_kids"],
  ],
  getImportedKeys: [["Parents", "Id", "ParentId", 0]],
  "getColumns of an identity": [["int identity", "YES"]],
  getProcedureColumns: [
    ["@RETURN_VALUE", 5, "int"],
    ["@a", 1, "int"],
    ["@b", 2, "int"],
    ["@c", 1, "nvarchar"],
  ],
};

/** Sign-in by name with TLS, types, statements, batches, procedures and metadata: the steps of TdsJdbc.java. */
describe.skipIf(missing !== undefined)(`JDBC drivers on the T-SQL front end${missing ? ` (${missing})` : ""}`, () => {
  let postgresql: TestPostgresql;
  let tds: TestTds;
  let directory: string;

  beforeAll(async () => {
    postgresql = await startTestPostgresql();
    directory = await mkdtemp(join(tmpdir(), "holdfast-jdbc-"));
    await runHostProgram("javac", "-d", directory, program);
  }, setUpMs);
  afterAll(async () => {
    await postgresql?.stop();
    await rm(directory, { recursive: true, force: true });
  });
  beforeEach(async () => {
    tds = await startTestTds(postgresql.url);
    await writeFile(join(directory, "ca.pem"), tds.certificate);
    await rm(join(directory, "ca.p12"), { force: true });
    const store = ["-keystore", join(directory, "ca.p12"), "-storetype", "PKCS12", "-storepass", storePassword];
    const certificate = ["-alias", "ca", "-file", join(directory, "ca.pem")];
    await runHostProgram("keytool", "-importcert", "-noprompt", ...certificate, ...store);
  });
  afterEach(() => tds?.stop());

  async function steps(artifact: string, url: string, count: number, limits: Readonly<Record<string, string>>) {
    const trust = { trustStore: join(directory, "ca.p12"), trustStorePassword: storePassword };
    const settings = Object.entries(trust).map(([name, value]) => `-Djavax.net.ssl.${name}=${value}`);
    const classPath = [directory, await mavenJar(artifact)].join(delimiter);
    const argv = ["java", ...settings, "-cp", classPath, "TdsJdbc", url, tds.user, tds.password] as const;
    // Java reads its arguments in the encoding of the locale: the password has an umlaut.
    return expectSteps(argv, { LC_ALL: "C.UTF-8" }, count, limits);
  }

  it(
    "are Microsoft's",
    async () => {
      const url = `jdbc:sqlserver://localhost:${tds.server.port};databaseName=defaultdb;encrypt=true`;
      const found = await steps("com.microsoft.sqlserver:mssql-jdbc:13.2.1.jre11", url, 46, limits);
      expect(Object.fromEntries(found)).toMatchObject({ ...values, "bulk copy": [40, 40] });
    },
    setUpMs,
  );

  it(
    "are jTDS",
    async () => {
      const url = `jdbc:jtds:sqlserver://localhost:${tds.server.port}/defaultdb;ssl=authenticate`;
      const own = { ...limits, getFunctions: "the driver does not have it" };
      const found = await steps("net.sourceforge.jtds:jtds:1.3.1", url, 45, own);
      expect(Object.fromEntries(found)).toMatchObject(values);
    },
    setUpMs,
  );
});
