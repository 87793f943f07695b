import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createPostgresqlDriver } from "./driver.ts";
import { platformSchemas, program } from "./layout.ts";

for (const version of ["17", "18"])
  describe.skipIf(!hasEngine("postgresql", version))(`the database that pg_dump -C of ${version} creates`, () => {
    let machine: EngineMachine;
    const query = async (sql: string, database = "defaultdb") => {
      const client = await connectPostgresql(machine, { user: "app_user", password: "secret", database });
      try {
        return (await client.query<Record<string, unknown>>(sql)).rows;
      } finally {
        await client.end();
      }
    };
    beforeAll(async () => {
      machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version, {
        users: [create(EngineUserSchema, { username: "app_user", role: "admin", verifier: scramVerifier("secret") })],
      });
      await machine.bringUp();
    });
    afterAll(() => machine?.remove());

    const statement = (name: string, locale: string) =>
      `CREATE DATABASE ${name} WITH TEMPLATE = template0 ENCODING = 'UTF8' ${locale}`;

    // The table of docs/start/migrate.md.
    test.each([
      ["in_c", "LOCALE_PROVIDER = libc LOCALE = 'C.UTF-8'"],
      ["in_icu", "LOCALE_PROVIDER = icu LOCALE = 'C.UTF-8' ICU_LOCALE = 'en-US'"],
      ["builtin", "LOCALE_PROVIDER = builtin LOCALE = 'C.UTF-8' BUILTIN_LOCALE = 'C.UTF-8'"],
      ["in_english", "LOCALE_PROVIDER = libc LOCALE = 'en_US.UTF-8'"],
      ["in_english_too", "LOCALE_PROVIDER = libc LOCALE = 'en_US.utf8'"],
      ["in_british", "LOCALE_PROVIDER = libc LOCALE = 'en_GB.UTF-8'"],
      ["in_german", "LOCALE_PROVIDER = libc LOCALE = 'de_DE.UTF8'"],
      ["in_mixed", "LOCALE_PROVIDER = libc LC_COLLATE = 'C' LC_CTYPE = 'sv_SE.UTF-8'"],
      ["in_icu_english", "LOCALE_PROVIDER = icu LOCALE = 'en_US.UTF-8' ICU_LOCALE = 'en-US'"],
    ])("is created from the database postgres: %s", async (name, locale) => {
      await query(statement(name, locale), "postgres");
      expect(await query("SELECT current_database() AS name", name)).toEqual([{ name }]);
    });

    // pg_dump names a provider since version 15; before 13 it wrote both categories.
    test.each([
      ["of_14", "LOCALE = 'en_US.UTF-8'", "aAbB"],
      ["of_12", "LC_COLLATE = 'en_US.UTF-8' LC_CTYPE = 'en_US.UTF-8'", "aAbB"],
      ["without_any", "", "ABab"],
    ])("has the order of texts that an older pg_dump names: %s", async (name, locale, texts) => {
      await query(statement(name, locale), "postgres");
      const sorted =
        "SELECT string_agg(text, '' ORDER BY text) AS texts FROM (VALUES ('b'), ('a'), ('B'), ('A')) v(text)";
      expect(await query(sorted, name)).toEqual([{ texts }]);
    });

    test("is refused with a locale of another system", async () => {
      const windows = statement("windows", "LOCALE_PROVIDER = libc LOCALE = 'English_United States.1252'");
      await expect(query(windows)).rejects.toThrow('invalid LC_COLLATE locale name: "English_United States.1252"');
    });

    test.each(["en-US-x-icu", "en_US.utf8", "en_US"])("may use the collation %s in its tables", async (collation) => {
      await query(`CREATE TABLE "${collation}" (text text COLLATE "${collation}")`);
      await query(`INSERT INTO "${collation}" VALUES ('b'), ('a'), ('B')`);
      const sorted = await query(`SELECT text FROM "${collation}" ORDER BY text`);
      expect(sorted).toEqual([{ text: "a" }, { text: "b" }, { text: "B" }]);
    });

    test("is loaded by pg_restore --create through the database postgres, with its order of texts", async () => {
      const { instance, run, signal } = machine;
      const file = join(instance.paths.data, "loaded.dump");
      const asClient = (name: string, database: string, ...options: string[]) => {
        const to = `host=${instance.spec.address} port=${instance.spec.port} user=app_user dbname=${database} sslmode=require`;
        return run([program(instance, name), `--dbname=${to}`, ...options], { env: { PGPASSWORD: "secret" }, signal });
      };
      await query(statement("loaded", "LOCALE_PROVIDER = libc LOCALE = 'en_US.UTF-8'"), "postgres");
      await query("CREATE TABLE texts AS SELECT unnest(ARRAY['b', 'a', 'B', 'A']) AS text", "loaded");
      const without = platformSchemas.map((schema) => `--exclude-schema=${schema}`);
      await asClient("pg_dump", "loaded", "--create", "--format=custom", `--file=${file}`, ...without);
      await query("DROP DATABASE loaded", "postgres");
      // Every database has the event trigger already (docs/start/migrate.md).
      await expect(asClient("pg_restore", "postgres", "--create", "--no-owner", file)).rejects.toMatchObject({
        output: expect.stringMatching(/^[^]*create event trigger[^]*errors ignored on restore: 1\n$/),
      });
      const sorted = await query("SELECT string_agg(text, '' ORDER BY text) AS texts FROM texts", "loaded");
      expect(sorted).toEqual([{ texts: "aAbB" }]);
    });

    test("may also be the database postgres, which its owner may drop and create again", async () => {
      // An upgrade drops the one with the OID of initdb.
      const own = "pg_get_userbyid(datdba) AS owner, oid = 5 AS initdb";
      expect(await query(`SELECT ${own} FROM pg_database WHERE datname = 'postgres'`)).toEqual([
        { owner: "app_user", initdb: false },
      ]);
      await query("DROP DATABASE postgres");
      await query(statement("postgres", "LOCALE_PROVIDER = libc LOCALE = 'en_US.UTF-8'"));
      await query("CREATE TABLE texts (text text)", "postgres");
      const names = await machine.driver.databases?.list(machine.instance, machine.signal);
      expect(names?.map(({ name }) => name)).toContain("postgres");
    });
  });
