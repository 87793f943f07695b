import { describe, expect, test } from "vitest";
import { parametersOf } from "./engine-catalog.ts";
import { excessMessage, planExcesses } from "./plan-limits.ts";
import { sharedBytes } from "./postgresql-sizing.ts";
import { printQuantity } from "./quantity.ts";

const gib = 1024 ** 3;
const mib = 1024 ** 2;
const plan = { vcpu: 1, memoryBytes: 2 * gib, storageBytes: 10 * gib };
const excessesOf = (parameters: Record<string, string>) =>
  planExcesses("postgresql", "17", plan, parameters, Object.keys(parameters));

// Printed by `postgres -C shared_memory_size` of PostgreSQL 17.
test.each([
  [27, {}],
  [501, { max_connections: 10_000 }],
  [3_997, { max_locks_per_transaction: 10_000, max_connections: 1_000 }],
  [2_544, { max_pred_locks_per_transaction: 10_000, max_connections: 1_000 }],
  [486, { max_prepared_transactions: 10_000 }],
  [4_341, { max_prepared_transactions: 1_000, max_locks_per_transaction: 10_000 }],
  [78, { max_worker_processes: 1_024 }],
  [1_102, { track_activity_query_size: mib, max_connections: 1_000 }],
  [66, { "pg_stat_statements.max": 100_000 }],
  [8_438, { shared_buffers: 8 * gib }],
])("%i MiB are shared with %o", (measured, values) => {
  const usual = {
    max_connections: 100,
    max_worker_processes: 10,
    max_locks_per_transaction: 64,
    max_pred_locks_per_transaction: 64,
    track_activity_query_size: 1_024,
    "pg_stat_statements.max": 5_000,
    shared_buffers: 16 * mib,
  };
  const estimate = sharedBytes(new Map<string, number>(Object.entries({ ...usual, ...values }))) / mib;
  expect(estimate).toBeGreaterThanOrEqual(measured);
  expect(estimate).toBeLessThan(measured * 1.1 + 10);
});

test.each([
  [{ shared_buffers: "8TB" }, "shared_buffers", /too little memory for shared_buffers: it is 11\d\dMB at most/],
  [{ max_connections: "10000" }, "max_connections", /max_connections: it is 2048 at most/],
  [{ max_locks_per_transaction: "100000" }, "max_locks_per_transaction", /it is \d{4,5} at most/],
  [{ work_mem: "2TB" }, "work_mem", /work_mem: it is 1GB at most/],
  [{ min_wal_size: "1TB" }, "min_wal_size", /too little storage for min_wal_size: it is 2560MB at most/],
])("%o is more than a plan holds", (parameters, name, words) => {
  const [excess] = excessesOf(parameters);
  expect(excess?.name).toBe(name);
  expect(excess && excessMessage(excess)).toMatch(words);
});

test("earlier values and the plan's own defaults are accepted", () => {
  expect(planExcesses("postgresql", "17", plan, { shared_buffers: "8TB", work_mem: "8MB" }, ["work_mem"])).toEqual([]);
  expect(excessesOf({ shared_buffers: "512MB", max_connections: "500", max_locks_per_transaction: "128" })).toEqual([]);
  expect(planExcesses("valkey", "8.1", plan, { "io-threads": "128" }, ["io-threads"])).toEqual([]);
});

describe("each parameter of the catalog", () => {
  test.each([...parametersOf("postgresql", "17")])(
    "%s has a least value that any plan holds, and a greatest",
    (name, parameter) => {
      const print = (number: number) =>
        parameter.unit === null ? String(number) : printQuantity(number, parameter.unit);
      if (parameter.minimum !== null) expect(excessesOf({ [name]: print(parameter.minimum) })).toEqual([]);
      if (parameter.maximum === null) return;
      const [excess] = excessesOf({ [name]: print(parameter.maximum) });
      if (excess !== undefined) expect(excessesOf({ [name]: excess.maximum ?? "" })).toEqual([]);
    },
  );
});
