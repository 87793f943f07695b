import { expect, test } from "vitest";
import { createQueryRateLimit } from "./query-rate-limit.ts";

test("a source over its rate gets some truncated responses; others are unaffected", () => {
  let ms = 0;
  const rate = createQueryRateLimit(10, () => ms, 20);
  const verdicts = Array.from({ length: 28 }, () => rate.admit("10.0.0.1"));
  expect(verdicts.slice(0, 20).every((verdict) => verdict === "answer")).toBe(true);
  expect(verdicts.slice(20)).toEqual(["drop", "drop", "drop", "truncate", "drop", "drop", "drop", "truncate"]);
  expect(rate.admit("10.0.0.2")).toBe("answer");
  ms = 100;
  expect(rate.admit("10.0.0.1")).toBe("answer");
});

test("addresses of one IPv6 customer are one source", () => {
  const rate = createQueryRateLimit(1, () => 0, 1);
  expect(rate.admit("2001:db8:0:1200::1")).toBe("answer");
  expect(rate.admit("2001:db8:0:12ff::2")).toBe("drop");
  expect(rate.admit("2001:db8:0:1300::1")).toBe("answer");
});
