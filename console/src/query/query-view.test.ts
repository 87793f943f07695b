import { expect, test } from "vitest";
import { cellText, csvOf, jsonOf, schemaOf, windowOf } from "./query-view.ts";

test("a null is not text, and control characters are visible", () => {
  expect(cellText(null)).toBe("NULL");
  expect(cellText("")).toBe("");
  expect(cellText("\u001b[0m")).toBe("␛[0m");
  expect(cellText("x".repeat(3_000))).toHaveLength(2_001);
});

test("no text of a row is a formula of a spreadsheet", () => {
  const rows = [["=1+1", "+x", "-x", "@x", 'a "b"', "a,b", "", null, -1, true]];
  expect(csvOf({ columns: ["=c"], rows })).toBe(`'=c\r\n'=1+1,'+x,'-x,'@x,"a ""b""","a,b","",,-1,true`);
});

test("a negative number is a number of CSV, also one of many digits", () => {
  const rows = [["-5", "-1.5", "-.5", "-1e-9", "-1.5-1", "-5 ", "--5"]];
  expect(csvOf({ columns: ["n"], rows })).toBe("n\r\n-5,-1.5,-.5,-1e-9,'-1.5-1,'-5 ,'--5");
});

test("JSON has an object for each row, with types as they are", () => {
  const rows = [["9007199254740993", null, true]];
  expect(JSON.parse(jsonOf({ columns: ["id", "id", "__proto__"], rows }))).toEqual([
    JSON.parse('{"id": "9007199254740993", "id_2": null, "__proto__": true}'),
  ]);
});

test.each([
  [0, 0, 22],
  [3_600, 90, 122],
  [35_600, 978, 1_000],
])("a table that is scrolled by %s px has the rows from %s to %s", (scrollTop, first, end) =>
  expect(windowOf(scrollTop, 430, { size: 36, count: 1_000, spare: 10 })).toEqual({ first, end }),
);

test("a table of 400 columns has the visible ones and some beside them", () =>
  expect(windowOf(16_000, 1_200, { size: 160, count: 400, spare: 4 })).toEqual({ first: 96, end: 112 }));

test("a table without rows has no visible rows", () => {
  expect(windowOf(0, 430, { size: 36, count: 0, spare: 10 })).toEqual({ first: 0, end: 0 });
});

test("tables of the default schema have no prefix", () => {
  const rows = [
    ["public", "orders", "id"],
    ["public", "orders", "total"],
    ["audit", "log", "id"],
  ];
  expect(schemaOf({ rows }, "public")).toEqual({ orders: ["id", "total"], "audit.log": ["id"] });
});
