import { expect, test } from "vitest";
import { settingsFrom, settingsWith } from "./log-settings.ts";

const log = { distance: (from: string, to: string) => Number(to) - Number(from) };
const at = (from: number, connections: number) => ({ from: String(from), values: { max_connections: connections } });

test("unchanged settings are recorded once", () => {
  const noted = settingsWith([at(1, 100)], "5", { max_connections: 100 });
  expect(noted).toEqual([at(1, 100)]);
  expect(settingsWith(noted, "7", { max_connections: 50 })).toEqual([at(1, 100), at(7, 50)]);
});

test("a log has the settings in force at a position and all later ones", () => {
  const all = [at(1, 1_000), at(5, 100), at(9, 200)];
  expect(settingsFrom(all, "4", log)).toEqual(all);
  expect(settingsFrom(all, "5", log)).toEqual(all.slice(1));
  expect(settingsFrom(all, "20", log)).toEqual(all.slice(2));
});

test("the oldest of many settings are merged with the largest of each, which fits a header", () => {
  let all = settingsWith([], "0", { max_connections: 500, max_locks_per_transaction: 64 });
  for (let n = 1; n < 1_000; n += 1) all = settingsWith(all, String(n), { max_connections: n % 2 ? 100 : 200 });
  expect(all[0]?.from).toBe("0");
  expect(all[0]?.values).toEqual({ max_connections: 500, max_locks_per_transaction: 64 });
  expect(all.at(-1)).toEqual(at(999, 100));
  const longest = all.map(() => ({
    from: "FFFFFFFF/FFFFFFFF",
    values: {
      max_connections: 10_000,
      max_worker_processes: 10_000,
      max_wal_senders: 10_000,
      max_prepared_transactions: 10_000,
      max_locks_per_transaction: 100_000,
    },
  }));
  expect(JSON.stringify(longest).length).toBeLessThan(3_000);
});
