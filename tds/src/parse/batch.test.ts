import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SqlError } from "../run/sql-error.ts";
import { parseBatch } from "./batch.ts";
import { tokenize } from "./lexer.ts";

const kinds = (text: string) => parseBatch(text).map(({ body }) => body.kind);

describe("batches", () => {
  // biome-ignore format: a table
  test.each([
    ["statements without semicolons",      "SELECT 1 SELECT 2 PRINT 'x' UPDATE t SET a = 1 WHERE b = 2 DELETE t", ["query", "query", "print", "update", "delete"]],
    ["a call without EXECUTE first",       "sp_who 'active'; SELECT 1",                                           ["execute", "query"]],
    ["comments that nest",                 "/* a /* b */ c */ SELECT 1 -- d",                                     ["query"]],
    ["quoted names",                       "SELECT [a ]]b], \"c\"\"d\" FROM [dbo].[t] AS \"x\"",                  ["query"]],
    ["an alias before a keyword",          "SELECT a AS b, c d, e = f, 'x' 'y' FROM t u WHERE u.a = 1",           ["query"]],
    ["conditions in parentheses",          "SELECT 1 WHERE ((a = 1) OR (b + 1) * 2 > (3)) AND NOT (c IS NULL)",   ["query"]],
    ["hints",                              "SELECT * FROM t WITH (NOLOCK) JOIN u (NOLOCK) ON 1 = 1 OPTION (RECOMPILE)", ["query"]],
    ["blocks",                             "IF 1 = 1 BEGIN SELECT 1 END ELSE PRINT 'no' WHILE 1 = 2 BREAK",       ["if", "while"]],
    ["TRY and CATCH",                      "BEGIN TRY SELECT 1 END TRY BEGIN CATCH THROW END CATCH",              ["try"]],
    ["transactions",                       "BEGIN TRAN a SAVE TRAN b ROLLBACK TRAN b COMMIT",                     ["begin", "save", "rollback", "commit"]],
    ["SET options",                        "SET NOCOUNT, XACT_ABORT ON SET TRANSACTION ISOLATION LEVEL SNAPSHOT SET @a += 1", ["setOption", "isolation", "set"]],
    ["no statements",                      " ;; -- none",                                                         []],
  ])("%s", (_, text, expected) => {
    expect(kinds(text)).toEqual(expected);
  });

  test("an error has the line of its token", () => {
    expect(() => parseBatch("SELECT 1\n\nSELECT FROM t")).toThrow(expect.objectContaining({ number: 156, line: 3 }));
    expect(() => parseBatch("SELECT 'a\nb'\n+")).toThrow(expect.objectContaining({ number: 102, line: 3 }));
  });

  test("a string has its quotes and its lines", () => {
    const [first, second] = tokenize("N'it''s\n' x");
    expect([first?.text, first?.isNational, second?.line]).toEqual(["it's\n", true, 2]);
  });

  test("a megabyte of nested parentheses is error 191", () => {
    const depth = 500_000;
    const text = `SELECT ${"(".repeat(depth)}1${")".repeat(depth)}`;
    expect(() => parseBatch(text)).toThrow(expect.objectContaining({ number: 191 }));
    const predicate = `SELECT 1 WHERE ${"(".repeat(depth)}1 = 1${")".repeat(depth)}`;
    expect(() => parseBatch(predicate)).toThrow(expect.objectContaining({ number: 191 }));
    expect(() => parseBatch("BEGIN ".repeat(100_000))).toThrow(expect.objectContaining({ number: 191 }));
  });

  test("random tokens are a batch or an error by number", () => {
    const words =
      "SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE MERGE USING WHEN MATCHED THEN CREATE TABLE INDEX ALTER ADD DROP DECLARE IF ELSE WHILE BEGIN END TRY CATCH EXEC CASE CAST AS int NULL NOT IN LIKE BETWEEN AND OR EXISTS TOP OVER ORDER BY GROUP JOIN LEFT APPLY UNION WITH OUTPUT COLLATE PRIMARY KEY a b t @a @@x #t 1 2.5 1e5 0xFF 'x' N'y' [q] ( ) , . ; = + - * / < > $1".split(
        " ",
      );
    const soup = fc.array(fc.constantFrom(...words), { maxLength: 40 }).map((tokens) => tokens.join(" "));
    fc.assert(
      fc.property(fc.oneof(soup, fc.string({ unit: "grapheme" })), (text) => {
        try {
          expect(parseBatch(text)).toBeDefined();
        } catch (error) {
          expect(error).toBeInstanceOf(SqlError);
        }
      }),
      { numRuns: 5_000 },
    );
  });
});
