import { describe, expect, test } from "vitest";
import type { EmitContext, Typed } from "./context.ts";
import { plainFunctions } from "./plain-functions.ts";

const context = {} as EmitContext;
const text = (sql: string): Typed => ({ sql, type: { name: "varchar", length: 10 }, isCollated: false });
const sqlOf = (name: "OBJECT_ID" | "SCHEMA_ID" | "TYPE_ID", argument: string) =>
  plainFunctions[name]?.emit([text(argument)], context).sql;

describe("a search of the catalog by a name", () => {
  test("runs once for a query, not for each row", () => {
    for (const name of ["OBJECT_ID", "SCHEMA_ID", "TYPE_ID"] as const) {
      expect(sqlOf(name, "'dbo.\"t\"'::text")).toMatch(/^\(SELECT holdfast_tsql\./);
      expect(sqlOf(name, "$1::varchar(10)")).toMatch(/^\(SELECT /);
    }
  });

  test("runs for each row if the name is a column's value", () => {
    expect(sqlOf("OBJECT_ID", '"t"."name"')).toMatch(/^holdfast_tsql\.object_id\(/);
  });
});
