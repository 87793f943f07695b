import { expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { expiryOf } from "./service-expiry.ts";

const hour = 3_600_000;

function service(
  ttlHours: number | null,
  change: Partial<{ protected: boolean; warnings: number[]; announced: boolean; deleting: boolean }> = {},
) {
  const expiresAt = ttlHours === null ? null : ttlHours * hour;
  return runningService(
    change.deleting === true ? { deletionRequestedAt: 1 } : {},
    { ttlHours, expiresAt, deletionProtection: change.protected ?? false },
    { expiryWarnings: change.warnings ?? [], announcedProtectedExpiry: change.announced ?? false },
  );
}

test.each([
  ["a service without an end", service(null), 0, false, { action: "none", recheckInMs: null }],
  ["two days before the end", service(48), 0, false, { action: "none", recheckInMs: 24 * hour }],
  ["a day before", service(48), 24 * hour, false, { action: "warn", hours: 24 }],
  [
    "a day before, warned",
    service(48, { warnings: [24] }),
    24 * hour,
    false,
    { action: "none", recheckInMs: 23 * hour },
  ],
  ["an hour before", service(48, { warnings: [24] }), 47 * hour, false, { action: "warn", hours: 1 }],
  [
    "a controller that slept through both warnings gives the nearest",
    service(48),
    47.5 * hour,
    false,
    { action: "warn", hours: 1 },
  ],
  [
    "a life of ten hours gets no warning of a day",
    service(10),
    1,
    false,
    { action: "none", recheckInMs: 9 * hour - 1 },
  ],
  ["the end", service(48, { warnings: [24, 1] }), 48 * hour, false, { action: "delete" }],
  [
    "the end while clocks disagree",
    service(48, { warnings: [24, 1] }),
    48 * hour,
    true,
    { action: "none", recheckInMs: 60_000 },
  ],
  [
    "the end of a protected one",
    service(48, { protected: true, warnings: [24, 1] }),
    48 * hour,
    false,
    { action: "announceProtection" },
  ],
  [
    "the end of a protected one, announced",
    service(48, { protected: true, announced: true }),
    49 * hour,
    false,
    { action: "none", recheckInMs: null },
  ],
  ["one that is being deleted", service(1, { deleting: true }), 9 * hour, false, { action: "none", recheckInMs: null }],
] as const)("%s", (_, object, now, deferred, expected) => {
  expect(expiryOf(object, now, deferred)).toEqual(expected);
});
