import { expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { healthRecheckInMs, healthTransition } from "./managed-service-health.ts";
import type { AnnouncedHealth, ManagedServiceObject, ServiceHealth } from "../managed-service.ts";

const from = 1_000_000;

/** The service after these observations, at seconds since the first, and its events. */
function observations(...statuses: readonly (readonly [afterS: number, status: ServiceHealth["status"]])[]) {
  const healthMemory: AnnouncedHealth = { announced: "healthy", status: "healthy", since: from };
  let service: ManagedServiceObject = runningService({}, {}, { healthMemory });
  const announced: unknown[] = [];
  for (const [afterS, status] of statuses) {
    const now = from + afterS * 1_000;
    const checks = [{ name: "liveness", nodeId: "n", status, since: now, reason: "words" }];
    service = { ...service, status: { ...service.status, health: { status, since: now, reason: "words", checks } } };
    const { record, event } = healthTransition(service, now);
    service = { ...service, status: { ...service.status, healthMemory: record } };
    if (event !== undefined) announced.push([afterS, event.data["from"], event.data["to"]]);
  }
  return { service, announced };
}

test.each([
  [
    "a lasting status, once",
    [
      [0, "unhealthy"],
      [9, "unhealthy"],
      [10, "unhealthy"],
      [60, "unhealthy"],
    ],
    [[10, "healthy", "unhealthy"]],
  ],
  [
    "no status that ends before",
    [
      [0, "degraded"],
      [9, "healthy"],
      [40, "healthy"],
    ],
    [],
  ],
  [
    "no two that change before either lasts",
    [
      [0, "degraded"],
      [8, "unhealthy"],
      [12, "unhealthy"],
    ],
    [],
  ],
  [
    "the last of several, compared with the announced one",
    [
      [0, "degraded"],
      [8, "unhealthy"],
      [18, "unhealthy"],
    ],
    [[18, "healthy", "unhealthy"]],
  ],
  [
    "each way",
    [
      [0, "unknown"],
      [15, "unknown"],
      [20, "healthy"],
      [30, "healthy"],
    ],
    [
      [15, "healthy", "unknown"],
      [30, "unknown", "healthy"],
    ],
  ],
] as const)("a change is recorded: %s", (_, statuses, expected) => {
  expect(observations(...statuses).announced).toEqual(expected);
});

test("the next check is due when the status has lasted long enough", () => {
  const { service } = observations([0, "unhealthy"]);
  expect(healthRecheckInMs(service, from + 4_000)).toBe(6_000);
  expect(healthRecheckInMs(observations([0, "unhealthy"], [10, "unhealthy"]).service, from)).toBeNull();
  const deleted = { ...service, metadata: { ...service.metadata, deletionRequestedAt: from } };
  expect(healthRecheckInMs(deleted, from)).toBeNull();
  expect(healthTransition(deleted, from + 20_000).event).toBeUndefined();
});
