import { expect, test } from "vitest";
import { createKeeperLog } from "./keeper-log.ts";

test("the keeper's log takes a burst and then one line a second, and counts dropped lines", () => {
  const lines: { readonly msg: string; readonly dropped?: number }[] = [];
  let ms = 0;
  const write = (line: string) => void lines.push(JSON.parse(line) as { msg: string });
  const note = createKeeperLog(write, () => ms, Date.now);
  for (let n = 0; n < 100_000; n += 1) note("component changed", { n });
  expect(lines).toHaveLength(200);
  ms = 1_000;
  note("component changed", {});
  expect(lines.at(-1)).toMatchObject({ dropped: 99_800 });
  ms = 2_000;
  note("agent not started", { error: "x".repeat(1 << 20) });
  expect(Object.keys(lines.at(-1) ?? {})).toEqual(["time", "name", "msg"]);
});
