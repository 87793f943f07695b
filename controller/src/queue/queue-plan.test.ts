import { expect, test } from "vitest";
import { newServiceObject } from "@holdfast/testing/controller/service-object.ts";
import { type QueueObject, afterEvent, changedQueue, newQueue } from "./queue.ts";
import { queueLifecycle } from "./queue-lifecycle.ts";
import { planQueue } from "./queue-plan.ts";

const { service } = newServiceObject();
const pending = newQueue(
  {
    serviceId: service.metadata.id,
    organizationId: "org",
    name: "jobs",
    queueId: "q",
    databaseName: "defaultdb",
    visibilityTimeoutSeconds: 30,
    maxAttempts: 5,
    dlqEnabled: true,
  },
  0,
);
const inState = (state: QueueObject["status"]["state"], change: Partial<QueueObject["status"]> = {}): QueueObject => ({
  ...pending,
  status: { ...pending.status, state, observedGeneration: 1, ...change },
});
const running = { service: { ...service, spec: { ...service.spec, power: "on" as const } }, connected: true };
const minute = 60_000;

test.each([
  ["provisions a pending queue once the agent is connected", pending, running, 0, { kind: "begin" }],
  ["writes the settings of a new queue", inState("Provisioning"), running, 0, { kind: "put" }],
  ["does nothing for an applied queue", inState("Active"), running, 0, { kind: "settled" }],
  ["writes changed settings", changedQueue(inState("Active"), { maxAttempts: 1 }, 1), running, 1, { kind: "put" }],
  ["does nothing for a failed queue", inState("Failed"), running, 0, { kind: "settled" }],
  ["deletes a queue whose deletion was requested", inState("Deprovisioning"), running, 60 * minute, { kind: "remove" }],
  ["waits for the machine", pending, { ...running, connected: false }, minute, { kind: "wait", delayMs: 9 * minute }],
  ["gives up after ten minutes", pending, { ...running, connected: false }, 10 * minute, { kind: "fail" }],
  [
    "does not time out after a clock jump",
    pending,
    { ...running, connected: false, clockJumped: true },
    60 * minute,
    { kind: "wait", delayMs: 10 * minute },
  ],
  [
    "waits at most ten minutes when the clock was set back",
    pending,
    { ...running, connected: false },
    -99 * minute,
    { delayMs: 10 * minute },
  ],
  [
    "deletes the queue of a deleted service",
    inState("Active"),
    { service: undefined, connected: false },
    0,
    { kind: "forget" },
  ],
  [
    "does not time out while the engine is stopped",
    pending,
    { ...running, service: { ...running.service, spec: { ...running.service.spec, power: "off" as const } } },
    60 * minute,
    { kind: "wait", delayMs: undefined },
  ],
])("%s", (_, queue, observed, now, step) => {
  expect(planQueue(queue, observed, now)).toMatchObject(step);
});

test("deletion is possible in every state except Deprovisioning", () => {
  for (const state of new Set(queueLifecycle.rows.map(([from]) => from))) {
    const deleting = afterEvent(inState(state), "deleteRequested", 7);
    if (state === "Deprovisioning") expect(deleting).toBeUndefined();
    else
      expect(deleting?.after).toMatchObject({
        metadata: { deletionRequestedAt: 7 },
        status: { state: "Deprovisioning", since: 7 },
      });
  }
});

test("a refused deletion can be requested again", () => {
  const deleting = afterEvent(inState("Active"), "deleteRequested", 1)?.after ?? pending;
  const failed = afterEvent(deleting, "refused", 2, "no")?.after ?? pending;
  expect(failed.metadata).not.toHaveProperty("deletionRequestedAt");
  expect(failed.status).toMatchObject({ state: "Failed", errorMessage: "no" });
  expect(afterEvent(failed, "deleteRequested", 3)?.after.status).toMatchObject({
    state: "Deprovisioning",
    errorMessage: null,
  });
});
