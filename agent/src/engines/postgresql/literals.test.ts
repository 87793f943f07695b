import { expect, test } from "vitest";
import { redactStrings } from "./literals.ts";

test.each([
  ["SELECT 'secret', x FROM t", "SELECT $1, x FROM t"],
  ["SELECT $1, 'it''s secret', $2", "SELECT $1, $3, $2"],
  [String.raw`SELECT E'se\'cret' || e'x'`, "SELECT $1 || $2"],
  ["SELECT $$secret$$, $tag$ $$ secret $tag$", "SELECT $1, $2"],
  ["SELECT U&'secret', B'101', X'1F', N'secret'", "SELECT $1, $2, $3, $4"],
  ["SELECT a -- secret\n, b /* secret /* nested */ secret */ FROM t", "SELECT a  \n, b   FROM t"],
  [`SELECT "it's a name", "a ""b"" 'c'" FROM t1$x`, `SELECT "it's a name", "a ""b"" 'c'" FROM t1$x`],
  ["SELECT a::varchar(10), 1.5e3, t1.c2 FROM t1", "SELECT a::varchar(10), 1.5e3, t1.c2 FROM t1"],
  ["SELECT date'2020-01-01', notdollar$a$b FROM t", "SELECT date$1, notdollar$a$b FROM t"],
] as const)("%s becomes %s", (sql, text) => {
  expect(redactStrings(sql)).toEqual({ text });
});

test.each([
  [String.raw`SELECT 'it\'s secret'`, /two ways/],
  ["SELECT 'secret", /is not closed/],
  ["SELECT $$secret", /is not closed/],
  ["SELECT /* secret", /is not closed/],
  ['SELECT "secret', /is not closed/],
] as const)("nothing is shown of %s", (sql, reason) => {
  expect(redactStrings(sql)).toEqual({ withheld: expect.stringMatching(reason) });
});
