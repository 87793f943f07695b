import { expect, test } from "vitest";
import { runningService } from "../../../../test/support/controller/service-object.ts";
import { healthDueInMs, rememberHealth } from "./health-change.ts";
import type { HealthMemory, ManagedServiceObject, ServiceHealth } from "./managed-service.ts";

const from = 1_000_000;

/** The service as it is after these looks, each some seconds after the first, and what it announced. */
function looks(...statuses: readonly (readonly [afterS: number, status: ServiceHealth["status"]])[]) {
  const healthMemory: HealthMemory = { announced: "healthy", status: "healthy", since: from };
  let service: ManagedServiceObject = runningService({}, {}, { healthMemory });
  const announced: unknown[] = [];
  for (const [afterS, status] of statuses) {
    const now = from + afterS * 1_000;
    const checks = [{ name: "liveness", nodeId: "n", status, since: now, reason: "words" }];
    service = { ...service, status: { ...service.status, health: { status, since: now, reason: "words", checks } } };
    const { memory, event } = rememberHealth(service, now);
    service = { ...service, status: { ...service.status, healthMemory: memory } };
    if (event !== undefined) announced.push([afterS, event.data["from"], event.data["to"]]);
  }
  return { service, announced };
}

test.each([
  [
    "one that holds, once",
    [
      [0, "unhealthy"],
      [9, "unhealthy"],
      [10, "unhealthy"],
      [60, "unhealthy"],
    ],
    [[10, "healthy", "unhealthy"]],
  ],
  [
    "not one that is over before",
    [
      [0, "degraded"],
      [9, "healthy"],
      [40, "healthy"],
    ],
    [],
  ],
  [
    "not two that change before either holds",
    [
      [0, "degraded"],
      [8, "unhealthy"],
      [12, "unhealthy"],
    ],
    [],
  ],
  [
    "the last of several, from what was announced",
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
  expect(looks(...statuses).announced).toEqual(expected);
});

test("the next look is due when the status will have held", () => {
  const { service } = looks([0, "unhealthy"]);
  expect(healthDueInMs(service, from + 4_000)).toBe(6_000);
  expect(healthDueInMs(looks([0, "unhealthy"], [10, "unhealthy"]).service, from)).toBeNull();
  const deleted = { ...service, metadata: { ...service.metadata, deletionRequestedAt: from } };
  expect(healthDueInMs(deleted, from)).toBeNull();
  expect(rememberHealth(deleted, from + 20_000).event).toBeUndefined();
});
