import { systemClock as clock } from "@holdfast/common/clock.ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createServiceAccess } from "#services/service/service-access.ts";
import { type ManagedServiceObject, managedServiceKind } from "#services/service/managed-service.ts";
import { testCall } from "@holdfast/testing/api/test-call.ts";
import { newServiceObject } from "@holdfast/testing/controller/service-object.ts";
import { createCollections } from "@holdfast/testing/controller/test-collections.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { createQueueAccess, type QueueAccess } from "./queue-access.ts";
import { newQueue, queueKind, type QueueObject } from "./queue.ts";

const settings = { databaseName: "defaultdb", visibilityTimeoutSeconds: 30, maxAttempts: 5, dlqEnabled: true };

let installation: TestStore;
let collections: ReturnType<typeof createCollections>;
let access: QueueAccess;

beforeAll(async () => {
  installation = await startTestStore();
  await putService("running", "Running");
  await putService("stopped", "Stopped");
  await putService("cache", "Running", "valkey");
  for (const state of ["Pending", "Active", "Failed", "Deprovisioning"] as const) await putQueue("running", state);
  await putQueue("stopped", "Active");
  collections = createCollections(installation.store);
  await collections.ready;
  access = createQueueAccess(createServiceAccess(collections), collections.queues);
});
afterAll(async () => {
  collections?.close();
  await installation?.close();
});

async function putService(id: string, state: ManagedServiceObject["status"]["state"], databaseType = "postgresql") {
  const { service } = newServiceObject();
  const unit = installation.begin();
  unit.create(managedServiceKind, {
    ...service,
    metadata: { ...service.metadata, id, name: id, organizationId: "o" },
    spec: { ...service.spec, databaseType, hostname: `${id}.local` },
    status: { ...service.status, state },
  });
  await unit.commit();
}

/** Named after its state. */
async function putQueue(serviceId: string, state: QueueObject["status"]["state"]) {
  const name = state.toLowerCase();
  const queue = newQueue(
    { serviceId, organizationId: "o", name, queueId: `${serviceId} ${name}`, ...settings },
    clock.now(),
  );
  const unit = installation.begin();
  unit.create(queueKind, { ...queue, status: { ...queue.status, state } });
  await unit.commit();
}

it("admits messages to an active queue of a running PostgreSQL", () => {
  expect(access.active("running", "active", testCall()).queue.object.status.state).toBe("Active");
  expect(access.running("running", testCall()).object.metadata.id).toBe("running");
});

it.each([
  ["an engine without queues", "NOT_SUPPORTED", () => access.service("cache", testCall())],
  ["a service that is not Running, for a new queue", "WRONG_STATE", () => access.running("stopped", testCall())],
  ["a service that is not Running, for messages", "WRONG_STATE", () => access.active("stopped", "active", testCall())],
  ["a queue that is Pending", "QUEUE_NOT_ACTIVE", () => access.active("running", "pending", testCall())],
  ["a queue that is Failed", "QUEUE_NOT_ACTIVE", () => access.active("running", "failed", testCall())],
  ["a queue that is Deprovisioning", "QUEUE_NOT_ACTIVE", () => access.active("running", "deprovisioning", testCall())],
  ["a name without a queue", "QUEUE_NOT_FOUND", () => access.queue("running", "nobody", testCall())],
  ["an unknown service", "SERVICE_NOT_FOUND", () => access.queue("nobody", "active", testCall())],
])("refuses %s", (_, key, look) => {
  expect(look).toThrow(expect.objectContaining({ key }));
});

it("shows the queues of a service that is stopped", () => {
  expect(access.queue("stopped", "active", testCall()).queue.object.metadata.name).toBe("active");
});
