import { expect, test } from "vitest";
import { type Log, type LogFields, rateLimitedLog } from "./log.ts";

function open() {
  const lines: [string, LogFields][] = [];
  const write = (message: string, fields: LogFields = {}) => void lines.push([message, fields]);
  const inner: Log = { debug: write, info: write, warn: write, error: write, child: () => inner };
  const clock = { nowMs: 0 };
  return { lines, clock, log: rateLimitedLog(inner, () => clock.nowMs) };
}

test("a flood of one message is limited and the suppressed lines are counted", () => {
  const { lines, clock, log } = open();
  for (let n = 0; n < 1_000; n += 1) log.warn("request refused", { n });
  expect(lines).toHaveLength(200);
  clock.nowMs = 1_000;
  log.warn("request refused", { n: 1_000 });
  log.warn("request refused", { n: 1_001 });
  expect(lines.slice(200)).toEqual([["request refused", { n: 1_000, suppressed: 800 }]]);
  clock.nowMs = 2_000;
  log.warn("request refused");
  expect(lines.at(-1)).toEqual(["request refused", { suppressed: 1 }]);
});

test("child logs share the limit, and each message has its own", () => {
  const { lines, log } = open();
  for (let n = 0; n < 150; n += 1) log.error("request failed");
  for (let n = 0; n < 150; n += 1) log.child({ machine: "m" }).error("request failed");
  expect(lines).toHaveLength(200);
  log.error("journal not written");
  for (let n = 0; n < 500; n += 1) log.info("task ended", { n });
  expect(lines).toHaveLength(701);
});
