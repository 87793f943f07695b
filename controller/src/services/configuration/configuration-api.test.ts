import { create } from "@bufbuild/protobuf";
import { systemClock } from "@holdfast/common/clock.ts";
import {
  ConfigurationService,
  UpdateConfigurationRequestSchema,
} from "@holdfast/proto/holdfast/v1/configuration_pb.ts";
import { OperationStatus } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { methodsOf, testCall } from "@holdfast/testing/api/test-call.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { defaultCatalog } from "#catalog/catalog.ts";
import { createEngineOffers } from "#catalog/engine-offer.ts";
import type { Collections } from "@holdfast/testing/controller/test-collections.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { createServiceAccess } from "../service/service-access.ts";
import { completed, operationKind } from "#operation/operation.ts";
import { createConfigurationApi } from "./configuration-api.ts";
import { managedServiceKind } from "../service/managed-service.ts";

// No reconciler runs: tests end operations themselves, as if the engine took that long.
let testStore: TestStore;
let collections: Collections;
const clock = systemClock;
const begin = () => testStore.begin();
const engines = createEngineOffers([{ engine: "postgresql", version: "17", available: true }] as never);
const call = testCall();

beforeAll(async () => {
  testStore = await startTestStore();
  collections = testStore.collections;
});
afterAll(() => testStore?.close());

function api(waitMs: number) {
  const { services, operations } = collections;
  const access = createServiceAccess({ services, operations });
  const fleet: Partial<Fleet> = { observation: () => undefined };
  const served = createConfigurationApi({
    begin,
    services,
    operations,
    access,
    fleet: fleet as Fleet,
    catalog: defaultCatalog,
    engines: () => engines,
    clock,
    newId: uuidv7,
    waitMs,
  });
  return methodsOf(ConfigurationService, served);
}

async function aRunningService(): Promise<string> {
  const id = uuidv7();
  const unit = begin();
  unit.create(managedServiceKind, runningService({ id, name: id, organizationId: "o" }));
  await collections.untilRevision(await unit.commit(), 60_000);
  return id;
}

function change(serviceId: string) {
  const parameters = { work_mem: { kind: { case: "stringValue", value: "8MB" } } } as const;
  return create(UpdateConfigurationRequestSchema, { serviceId, parameters });
}

/** Ends the service's operation, as its reconciler does. */
async function end(serviceId: string): Promise<void> {
  const operation = await waitUntil("the operation is on record", () =>
    [...collections.operations.values()].find(
      ({ object }) => object.spec.subject.id === serviceId && object.status.state !== "cancelled",
    ),
  );
  const service = await collections.services.getCurrent(serviceId);
  if (service === undefined) throw new Error("the service is gone");
  const unit = begin();
  unit.update(operationKind, operation, completed(operation.object, clock.now()));
  const status = { ...service.object.status, operationId: null };
  unit.update(managedServiceKind, service, { ...service.object, status });
  await unit.commit();
}

test("parameters that an engine applies slowly are returned with their operation until it ends", async () => {
  const id = await aRunningService();
  const { updateConfiguration, getConfiguration } = api(1);
  const answer = await updateConfiguration(change(id), call);
  expect(answer.operation).toMatchObject({ serviceId: id, type: "configure", status: OperationStatus.PENDING });
  expect(answer.parameters["work_mem"]).toMatchObject({ value: "8MB" });
  expect((await getConfiguration({ serviceId: id }, call)).operation?.id).toBe(answer.operation?.id);

  await end(id);
  const over = await waitUntil("the operation is not shown any more", async () => {
    const configuration = await getConfiguration({ serviceId: id }, call);
    return configuration.operation === undefined && configuration;
  });
  expect(over.parameters["work_mem"]).toMatchObject({ value: "8MB" });
});

test("a change that does not end is superseded by the next change", async () => {
  const id = await aRunningService();
  const { updateConfiguration } = api(1);
  const first = await updateConfiguration(change(id), call);
  const second = await updateConfiguration(change(id), call);
  const states = () => {
    const all = [...collections.operations.values()].filter(({ object }) => object.spec.subject.id === id);
    return Object.fromEntries(all.map(({ object }) => [object.metadata.id, object.status.state]));
  };
  expect(second.operation?.id).not.toBe(first.operation?.id);
  await waitUntil("both are on record", () => states()[first.operation?.id ?? ""] === "cancelled");
  expect(states()[second.operation?.id ?? ""]).toBe("pending");
  await end(id);
});

test("parameters that an engine applies in time are returned without an operation", async () => {
  const id = await aRunningService();
  // Longer than the test's time limit: the response comes by the change, not by the timeout.
  const answer = api(600_000).updateConfiguration(change(id), call);
  await end(id);
  const { operation, parameters } = await answer;
  expect(operation).toBeUndefined();
  expect(parameters["work_mem"]).toMatchObject({ value: "8MB" });
});
