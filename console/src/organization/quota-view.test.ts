import { expect, test } from "vitest";
import { quotaNotice, quotaRows } from "./quota-view.ts";

test.each([
  [0, 50, 0, undefined],
  [39, 50, 78, undefined],
  [40, 50, 80, "nearly used up"],
  [199, 200, 99, "nearly used up"],
  [50, 50, 100, "used up"],
  [60, 50, 100, "used up"],
  [0, 0, 100, "used up"],
])("%d of %d are %d percent: %s", (used, limit, percent, notice) => {
  const [row] = quotaRows({ apps: { used, limit } });
  expect(row?.percent).toBe(percent);
  expect(row && quotaNotice(row)).toBe(notice);
});

test("the most used quota is the first, and storage has its unit", () => {
  const rows = quotaRows({
    webhooks: { used: 0, limit: 20 },
    api_keys: { used: 0, limit: 200 },
    storage_gb: { used: 1_024, limit: 102_400 },
  });
  expect(rows.map(({ title, text }) => `${title}: ${text}`)).toEqual([
    "Storage: 1,024 of 102,400 GB",
    "API keys: 0 of 200",
    "Webhooks: 0 of 20",
  ]);
});
