import { expect, test } from "vitest";
import type { RunningQuery } from "@holdfast/sdk/responses.ts";
import { hitText, stateText, timeText } from "./performance-view.ts";

test.each([
  [0.25, "0.25 ms"],
  [999, "999 ms"],
  [3_400, "3.4 s"],
  [720_000, "12 min"],
])("%d ms is %s", (ms, text) => {
  expect(timeText(ms)).toBe(text);
});

test("the share of memory has a unit, and is empty without reads", () => {
  expect(hitText({ cache_hit_ratio: 0.9987 })).toBe("99.9%");
  expect(hitText({ cache_hit_ratio: null })).toBe("");
});

test("a session names what it waits for", () => {
  const session: RunningQuery = {
    query_run_id: "1-2",
    pid: 1,
    username: "app_user",
    database: "defaultdb",
    state: "active",
    wait: null,
    blocked_by: [],
    age_seconds: 3,
    transaction_seconds: null,
    client: null,
    query: "SELECT 1",
  };
  expect(stateText(session)).toBe("active");
  expect(stateText({ ...session, wait: "Lock: relation" })).toBe("active, waits for Lock: relation");
  expect(stateText({ ...session, wait: "Lock: relation", blocked_by: [7, 9] })).toBe("active, blocked by 7, 9");
});
