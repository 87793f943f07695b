import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createPostgresqlDriver } from "./driver.ts";

const version = "17";

describe.skipIf(!hasEngine("postgresql", version))("the database that a dump of pg_dump -C creates", () => {
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
  ])("is created: %s", async (name, locale) => {
    await query(statement(name, locale));
    expect(await query("SELECT current_database() AS name", name)).toEqual([{ name }]);
  });

  test.each([
    ["in_english", "LOCALE_PROVIDER = libc LOCALE = 'en_US.UTF-8'"],
    ["in_icu_english", "LOCALE_PROVIDER = icu LOCALE = 'en_US.UTF-8' ICU_LOCALE = 'en-US'"],
  ])("is refused with a locale of the C library that the image lacks: %s", async (name, locale) => {
    await expect(query(statement(name, locale))).rejects.toThrow('invalid LC_COLLATE locale name: "en_US.UTF-8"');
  });

  test("may use each collation of ICU in its tables", async () => {
    await query('CREATE TABLE texts (text text COLLATE "en-US-x-icu")');
    await query("INSERT INTO texts VALUES ('b'), ('a'), ('B')");
    expect(await query("SELECT text FROM texts ORDER BY text")).toEqual([{ text: "a" }, { text: "b" }, { text: "B" }]);
  });
});
