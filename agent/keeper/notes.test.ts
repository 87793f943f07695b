import { expect, test } from "vitest";
import { createNotes } from "./notes.ts";

test("the keeper's log takes a burst and then a line a second, and counts what it left out", () => {
  const lines: { readonly msg: string; readonly leftOut?: number }[] = [];
  let ms = 0;
  const write = (line: string) => void lines.push(JSON.parse(line) as { msg: string });
  const note = createNotes(write, () => ms, Date.now);
  for (let n = 0; n < 100_000; n += 1) note("component changed", { n });
  expect(lines).toHaveLength(200);
  ms = 1_000;
  note("component changed", {});
  expect(lines.at(-1)).toMatchObject({ leftOut: 99_800 });
  ms = 2_000;
  note("agent not started", { error: "x".repeat(1 << 20) });
  expect(Object.keys(lines.at(-1) ?? {})).toEqual(["time", "name", "msg"]);
});
