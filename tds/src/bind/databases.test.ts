import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { schemaOf, schemaPrefix } from "./databases.ts";

describe("schemas of databases in the layout multi-db", () => {
  // biome-ignore format: a table
  test.each([
    ["sales",          "dbo",        "sales_dbo"],
    ["Sales",          "DBO",        "sales_dbo"],
    ["my_app",         "my_schema",  "my__app_my_schema"],
    ["a",              "_b",         "a_$_b"],
    ["a_",             "b",          "a___b"],
    ["holdfast",       "tsql",       "$holdfast_tsql"],
    ["information",    "schema",     "$information_schema"],
    ["tsql",           "dbo",        "$tsql_dbo"],
    ["mdb",            "queue",      "$mdb_queue"],
    ["pg",             "catalog",    "$pg_catalog"],
    ["pg_x",           "dbo",        "$pg__x_dbo"],
    ["$pg",            "dbo",        "$$pg_dbo"],
    ["größe",          "dbo",        "größe_dbo"],
  ])("%s.%s is %s", (database, schema, expected) => {
    expect(schemaOf(database, schema, 1)).toBe(expected);
  });

  test("no two of them are the same schema, and none is one of the platform or of PostgreSQL", () => {
    const part = fc.oneof(
      fc.string({ unit: fc.constantFrom("a", "_", "$", "#", "p", "g"), minLength: 1, maxLength: 6 }),
      fc.constantFrom("pg", "holdfast", "tsql", "information", "schema", "mdb", "queue", "catalog", "_mdb"),
    );
    const pairs = fc.uniqueArray(fc.tuple(part, part), {
      minLength: 2,
      maxLength: 60,
      selector: (pair) => JSON.stringify(pair),
    });
    fc.assert(
      fc.property(pairs, (list) => {
        const schemas = list.map(([database, schema]) => schemaOf(database, schema, 1));
        expect(new Set(schemas).size).toBe(list.length);
        for (const schema of schemas)
          expect(schema).not.toMatch(
            /^(?:pg_.*|holdfast_tsql|information_schema|tsql_information_schema|_?mdb_.*|sys|dbo)$/,
          );
      }),
    );
  });

  test("a long name has a digest, and its schemas fit PostgreSQL's limit", () => {
    const long = "n".repeat(128);
    expect(schemaPrefix(long)).not.toBe(schemaPrefix(`${long.slice(1)}m`));
    expect(schemaOf(long, "dbo", 1)).toMatch(/^\$#[0-9a-f]{24}_dbo$/);
    expect(() => schemaOf(long, "s".repeat(37), 1)).toThrow("too long");
    expect(Buffer.byteLength(schemaOf("ü".repeat(16), "s".repeat(30), 1))).toBe(63);
  });

  test.each(["a\0b", "a\ud800"])("refuses a name that PostgreSQL would change (%j)", (name) => {
    expect(() => schemaOf(name, "dbo", 1)).toThrow("not permitted");
    expect(() => schemaOf("a", name, 1)).toThrow("not permitted");
  });
});
