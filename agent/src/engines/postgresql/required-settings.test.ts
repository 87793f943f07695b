import { expect, test } from "vitest";
import { controlSettings, exceeds, maxSettings, lackingSettings } from "./required-settings.ts";

test("pg_controldata prints the settings of the log that was replayed last", () => {
  const printed = [
    "wal_level setting:                    replica",
    "wal_log_hints setting:                on",
    "max_connections setting:              500",
    "max_worker_processes setting:         10",
    "max_wal_senders setting:              12",
    "max_prepared_xacts setting:           3",
    "max_locks_per_xact setting:           64",
    "track_commit_timestamp setting:       off",
  ].join("\n");
  expect(controlSettings(printed)).toEqual({
    max_connections: 500,
    max_worker_processes: 10,
    max_wal_senders: 12,
    max_prepared_transactions: 3,
    max_locks_per_transaction: 64,
  });
});

test("the greatest value of each required setting counts, and no other setting", () => {
  const settings = [
    { max_connections: 100, work_mem: 4 },
    { max_connections: 500 },
    { max_worker_processes: Number.NaN },
  ];
  expect(maxSettings(...settings)).toEqual({ max_connections: 500 });
  expect(exceeds({ max_connections: 500 }, { max_connections: 400, max_worker_processes: 8 })).toBe(true);
  expect(exceeds({ max_connections: 400 }, { max_connections: 400 })).toBe(false);
});

test.each([
  ["FATAL:  recovery aborted because of insufficient parameter settings"],
  ["WARNING:  hot standby is not possible because of insufficient parameter settings"],
])("an engine that says %s says which setting", (line) => {
  const detail = "max_connections = 400 is a lower setting than on the primary server, where its value was 500.";
  const output = `2026-11-28 05:07:07 GMT [24] ${line}\n2026-11-28 05:07:07 GMT [24] DETAIL:  ${detail}\n`;
  expect(lackingSettings(output)).toEqual({ max_connections: 500 });
});

test("an engine that ended for another reason lacks no setting", () => {
  expect(lackingSettings("FATAL:  recovery ended before configured recovery target was reached")).toBeUndefined();
});
