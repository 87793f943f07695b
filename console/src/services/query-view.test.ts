import { expect, test } from "vitest";
import { cellText, csvOf } from "./query-view.ts";

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
