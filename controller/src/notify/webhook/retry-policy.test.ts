import { expect, test } from "vitest";
import { type RetryPolicyName, waitAfterMs } from "./retry-policy.ts";

test.each<[RetryPolicyName, number[]]>([
  ["standard", [1, 2]],
  ["extended", [1, 2, 300, 1_800, 7_200, 18_000, 36_000]],
])("%s waits these seconds, then gives up", (policy, seconds) => {
  const waits: number[] = [];
  for (let wait = waitAfterMs(policy, 1); wait !== undefined; wait = waitAfterMs(policy, waits.length + 1))
    waits.push(wait / 1_000);
  expect(waits).toEqual(seconds);
});
