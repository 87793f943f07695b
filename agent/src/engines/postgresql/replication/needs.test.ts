import { expect, test } from "vitest";
import { settingsIn } from "./needs.ts";

test("reads what a primary had from the words of pg_controldata", () => {
  const told = `wal_level setting:                    replica
max_connections setting:              100
max_worker_processes setting:         10
max_wal_senders setting:              10
max_prepared_xacts setting:           3
max_locks_per_xact setting:           64
track_commit_timestamp setting:       off
`;
  expect(settingsIn(told)).toEqual({
    max_connections: 100,
    max_worker_processes: 10,
    max_prepared_transactions: 3,
    max_locks_per_transaction: 64,
  });
});
