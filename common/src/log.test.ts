import { expect, test } from "vitest";
import { type Log, type LogFields, paceLog } from "./log.ts";

function open() {
  const lines: [string, LogFields][] = [];
  const write = (message: string, fields: LogFields = {}) => void lines.push([message, fields]);
  const inner: Log = { debug: write, info: write, warn: write, error: write, child: () => inner };
  const clock = { nowMs: 0 };
  return { lines, clock, log: paceLog(inner, () => clock.nowMs) };
}

test("a flood of one message is two hundred lines and one a second, with the number of those left out", () => {
  const { lines, clock, log } = open();
  for (let n = 0; n < 1_000; n += 1) log.warn("request refused", { n });
  expect(lines).toHaveLength(200);
  clock.nowMs = 1_000;
  log.warn("request refused", { n: 1_000 });
  log.warn("request refused", { n: 1_001 });
  expect(lines.slice(200)).toEqual([["request refused", { n: 1_000, leftOut: 800 }]]);
  clock.nowMs = 2_000;
  log.warn("request refused");
  expect(lines.at(-1)).toEqual(["request refused", { leftOut: 1 }]);
});

test("children share the bound of their log, and other messages have their own", () => {
  const { lines, log } = open();
  for (let n = 0; n < 150; n += 1) log.error("request failed");
  for (let n = 0; n < 150; n += 1) log.child({ machine: "m" }).error("request failed");
  expect(lines).toHaveLength(200);
  log.error("journal not written");
  for (let n = 0; n < 500; n += 1) log.info("task ended", { n });
  expect(lines).toHaveLength(701);
});
