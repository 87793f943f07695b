import { create } from "@bufbuild/protobuf";
import { type Clock, systemClock } from "@holdfast/common/clock.ts";
import { ListEngineDatabasesResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { CreateQueueRequestSchema } from "@holdfast/proto/holdfast/v1/queue_pb.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createServiceAccess } from "#services/service/service-access.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import { newServiceObject } from "@holdfast/testing/controller/service-object.ts";
import { testCall } from "@holdfast/testing/api/test-call.ts";
import { createCollections } from "@holdfast/testing/controller/test-collections.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { createQueueAccess } from "./queue-access.ts";
import { queueDefinitions } from "./queue-api.ts";
import { newQueue, queueKind } from "./queue.ts";

const clock: Clock = systemClock;
const serviceId = "service-1";
const most = 200;

let installation: TestStore;
beforeAll(async () => {
  installation = await startTestStore();
});
afterAll(() => installation?.close());

/** A controller's RPCs of queues, with separate memory; its engine has the default database. */
async function startController() {
  const collections = createCollections(installation.store);
  await collections.ready;
  const { queues } = collections;
  const value = create(ListEngineDatabasesResultSchema, { databases: [{ name: "defaultdb" }] });
  const rpcs = queueDefinitions({
    queues,
    access: createQueueAccess(createServiceAccess(collections), queues),
    tasks: { run: async () => value as never },
    cursors: undefined as never,
    begin: installation.begin,
    clock,
    newId: uuidv7,
  });
  return {
    create: (name: string) => rpcs.createQueue(create(CreateQueueRequestSchema, { serviceId, name }), testCall()),
    collections,
  };
}

it("limits a service to 200 queues across concurrent controllers", async () => {
  const { service } = newServiceObject();
  const unit = installation.begin();
  const metadata = { ...service.metadata, organizationId: "o" };
  unit.create(managedServiceKind, { ...service, metadata, status: { ...service.status, state: "Running" } });
  await unit.commit();
  const settings = { visibilityTimeoutSeconds: 30, maxAttempts: 5, dlqEnabled: true, databaseName: "defaultdb" };
  for (let from = 0; from < most - 1; from += 50) {
    const some = installation.begin();
    for (let n = from; n < Math.min(from + 50, most - 1); n += 1)
      some.create(
        queueKind,
        newQueue({ serviceId, organizationId: "o", name: `q-${n}`, queueId: uuidv7(), ...settings }, clock.now()),
      );
    await some.commit();
  }
  const controllers = await Promise.all([startController(), startController(), startController()]);
  const requests = await Promise.allSettled(
    controllers.flatMap((controller, at) => [1, 2, 3, 4].map((n) => controller.create(`late-${at}-${n}`))),
  );
  const made = requests.filter(({ status }) => status === "fulfilled");
  expect(made).toHaveLength(1);
  for (const answer of requests)
    if (answer.status === "rejected")
      expect(answer.reason).toMatchObject({ key: "QUEUE_LIMIT_REACHED", members: { used: most, limit: most } });
  const { values } = await installation.store.list("/holdfast/v1/queue/", { limit: 500 });
  expect(values).toHaveLength(most);
  for (const { collections } of controllers) collections.close();
});
