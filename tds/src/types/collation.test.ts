import { describe, expect, test } from "vitest";
import { collateText, collationOfBackend, collations, defaultCollation, findCollation } from "./collation.ts";

const hex = (name: string) => Buffer.from(findCollation(name)?.wire ?? []).toString("hex");

describe("collations", () => {
  // biome-ignore format: a table
  test.each([
    ["SQL_Latin1_General_CP1_CI_AS",    "0904d00034"],
    ["SQL_Latin1_General_CP1_CS_AS",    "0904c00033"],
    ["SQL_Latin1_General_CP1_CI_AI",    "0904f00036"],
    ["Latin1_General_CI_AS",            "0904d00000"],
    ["Latin1_General_BIN",              "0904000100"],
    ["Latin1_General_BIN2",             "0904000200"],
    ["Latin1_General_100_CS_AI",        "0904e02000"],
    ["Latin1_General_100_CI_AS_SC_UTF8", "0904d02400"],
    ["Latin1_General_100_BIN2_UTF8",    "0904002600"],
  ])("%s has the bytes of SQL Server", (name, bytes) => {
    expect(hex(name)).toBe(bytes);
  });

  test("names have no case, and each is another collation of PostgreSQL", () => {
    expect(findCollation("sql_latin1_general_cp1_ci_as")).toEqual(defaultCollation);
    expect(findCollation("Japanese_CI_AS")).toBeUndefined();
    expect(new Set(collations.map(({ backend }) => backend)).size).toBe(collations.length);
    for (const each of collations) expect(collationOfBackend(each.backend)).toBe(each);
  });

  test("the default has the name of PostgreSQL's from before there was a choice", () => {
    expect(collateText(defaultCollation)).toBe('COLLATE holdfast_tsql."ci_as"');
    expect(collationOfBackend("C").name).toBe("Latin1_General_BIN2");
  });
});
