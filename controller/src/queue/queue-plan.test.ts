import { expect, test } from "vitest";
import { newServiceObject } from "../../../test/support/controller/service-object.ts";
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
  ["begins one that the agent can take", pending, running, 0, { kind: "begin" }],
  ["has the database take it", inState("Provisioning"), running, 0, { kind: "put" }],
  ["leaves what is as it is asked", inState("Active"), running, 0, { kind: "settled" }],
  ["brings other settings", changedQueue(inState("Active"), { maxAttempts: 1 }, 1), running, 1, { kind: "put" }],
  ["leaves what failed", inState("Failed"), running, 0, { kind: "settled" }],
  ["removes what goes", inState("Deprovisioning"), running, 60 * minute, { kind: "remove" }],
  ["waits for the machine", pending, { ...running, connected: false }, minute, { kind: "wait", forMs: 9 * minute }],
  ["gives up after ten minutes", pending, { ...running, connected: false }, 10 * minute, { kind: "fail" }],
  [
    "does not give up after a jump of the clock",
    pending,
    { ...running, connected: false, clockJumped: true },
    60 * minute,
    { kind: "wait", forMs: 10 * minute },
  ],
  [
    "waits no longer when the clock was put back",
    pending,
    { ...running, connected: false },
    -99 * minute,
    { forMs: 10 * minute },
  ],
  [
    "forgets one of a service that is gone",
    inState("Active"),
    { service: undefined, connected: false },
    0,
    { kind: "forget" },
  ],
  [
    "does not give up while the engine is stopped",
    pending,
    { ...running, service: { ...running.service, spec: { ...running.service.spec, power: "off" as const } } },
    60 * minute,
    { kind: "wait", forMs: undefined },
  ],
])("%s", (_, queue, observed, now, step) => {
  expect(planQueue(queue, observed, now)).toMatchObject(step);
});

test("deletion wins in every state but the one that it leads to", () => {
  for (const state of new Set(queueLifecycle.rows.map(([from]) => from))) {
    const gone = afterEvent(inState(state), "deleteRequested", 7);
    if (state === "Deprovisioning") expect(gone).toBeUndefined();
    else
      expect(gone?.after).toMatchObject({
        metadata: { deletionRequestedAt: 7 },
        status: { state: "Deprovisioning", since: 7 },
      });
  }
});

test("a deletion that was refused is asked for anew", () => {
  const going = afterEvent(inState("Active"), "deleteRequested", 1)?.after ?? pending;
  const failed = afterEvent(going, "refused", 2, "no")?.after ?? pending;
  expect(failed.metadata).not.toHaveProperty("deletionRequestedAt");
  expect(failed.status).toMatchObject({ state: "Failed", errorMessage: "no" });
  expect(afterEvent(failed, "deleteRequested", 3)?.after.status).toMatchObject({
    state: "Deprovisioning",
    errorMessage: null,
  });
});
