import { randomBytes } from "node:crypto";
import { create, toJsonString } from "@bufbuild/protobuf";
import type { Operation } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import type { AnyMessage, Call } from "@holdfast/common/call.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { type DatabasePassword, DatabasePasswordSchema } from "@holdfast/proto/holdfast/v1/database_user_pb.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { testCall } from "@holdfast/testing/api/test-call.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type Collections, createCollections } from "@holdfast/testing/controller/test-collections.ts";
import { createServiceAccess } from "../../service/service-access.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import { createStoredResponses } from "#kernel/store/stored-responses.ts";
import type { Store } from "#kernel/store/store.ts";
import { createUnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { EngineChange } from "./engine-change.ts";
import { endChange, type EndStep } from "./engine-change-end.ts";
import { createEngineChanges } from "./engine-changes.ts";
import { managedServiceKind } from "../../service/managed-service.ts";

// No reconciler runs: tests end changes themselves, as if the engine took that long.
let etcd: TestEtcd;
let store: Store;
let collections: Collections;
const clock = systemClock;
const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
const begin = () => createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock, ids: uuidv7 });

beforeAll(async () => {
  etcd = await startTestEtcd();
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  collections = createCollections(store);
  await collections.ready;
});
afterAll(async () => {
  collections?.close();
  await store?.close();
  await etcd?.stop();
});

function callWith(key?: string): Call {
  const encode = (answer: AnyMessage) => ({
    status: (answer as DatabasePassword).operation === undefined ? 200 : 202,
    headers: {},
    body: toJsonString(DatabasePasswordSchema, answer as DatabasePassword),
    secret: true,
  });
  const own = { scope: "s", principal: "user:u", organizationId: "o", bodyHash: "b" };
  return testCall(key === undefined ? {} : { idempotency: { ...own, key, encode } });
}

const stored = async (call: Call) => {
  if (call.idempotency === undefined) throw new Error("the call has no key");
  const answers = createStoredResponses({ store, sealer, clock });
  return answers.find(call.idempotency).finally(answers.close);
};

type Reached = Pick<typeof collections.databaseUsers, "untilRevision">;

function changes(waitMs: number, { connected = true, users = collections.databaseUsers as Reached } = {}) {
  const { services, operations, engineChanges } = collections;
  const access = createServiceAccess({ services, operations });
  const fleet = { session: () => (connected ? ({} as never) : undefined) };
  return createEngineChanges({
    begin,
    changes: engineChanges,
    operations,
    users,
    access,
    fleet,
    awaitDescriptor: async () => undefined,
    clock,
    newId: uuidv7,
    waitMs,
  });
}

const reset: EngineChange = {
  type: "reset_password",
  user: { serviceId: "s", username: "u", sealedPassword: "sealed", verifier: "v" },
};

function requestOf(serviceId: string, change: EngineChange = reset) {
  const answer = { serviceId, username: "u", password: "secret" };
  return {
    serviceId,
    change,
    audit: { action: "database-user.reset-password", objectKind: "database-user", objectId: "u" },
    inFlight: (operation: Operation) => create(DatabasePasswordSchema, { ...answer, operation }),
    applied: () => create(DatabasePasswordSchema, answer),
  } as const;
}

async function aRunningService(): Promise<string> {
  const id = uuidv7();
  const unit = begin();
  unit.create(managedServiceKind, runningService({ id, name: id, organizationId: "o" }));
  await collections.untilRevision(await unit.commit(), 60_000);
  return id;
}

/** Ends the service's change, as its reconciler does. */
async function end(serviceId: string, step: EndStep): Promise<void> {
  const change = await waitUntil("the change is on record", () =>
    [...collections.engineChanges.values()].find(({ object }) => object.spec.serviceId === serviceId),
  );
  const operation = await collections.operations.getCurrent(change.object.spec.operationId);
  const service = await collections.services.getCurrent(serviceId);
  if (operation === undefined) throw new Error("the change has no operation");
  const deps = { users: collections.databaseUsers, begin, clock };
  const records = { change, operation, service, attempt: undefined };
  await endChange(step, records, deps, new AbortController().signal);
}

const taken: EndStep = { kind: "applied", role: "readwrite" };

test("a slow change is returned with its operation, also for a repeated Idempotency-Key", async () => {
  const id = await aRunningService();
  const call = callWith(uuidv7());
  const patient = changes(600_000);
  const requested = patient.apply(requestOf(id), call);
  await waitUntil("the change is shown", () => patient.find(id, { kind: "user", name: "u" }));
  // A controller that is killed here leaves this response.
  expect(await stored(call)).toMatchObject({ status: 202 });
  await end(id, taken);
  expect((await requested).operation).toBeUndefined();
  expect(await stored(call)).toMatchObject({ status: 200, secret: true });
  const user = await collections.databaseUsers.getCurrent(`${id}.u`);
  expect(user?.object.spec).toMatchObject({ role: "readwrite", sealedPassword: "sealed" });

  const hurried = callWith(uuidv7());
  const late = await changes(1).apply(requestOf(id), hurried);
  expect(late.operation).toMatchObject({ type: "reset_password" });
  expect((await stored(hurried))?.body).toContain(String(late.operation?.id));
  await end(id, taken);
});

test("a change is returned only after memory has the stored user", async () => {
  const id = await aRunningService();
  const known = Promise.withResolvers<void>();
  const waitedFor: bigint[] = [];
  const users: Reached = {
    untilRevision(revision) {
      waitedFor.push(revision);
      return known.promise;
    },
  };
  let hasResponded = false;
  const requested = changes(600_000, { users })
    .apply(requestOf(id), callWith())
    .then(() => (hasResponded = true));
  await end(id, taken);
  await waitUntil("it waits for the users", () => waitedFor.length > 0);
  expect(waitedFor).toEqual([(await collections.databaseUsers.getCurrent(`${id}.u`))?.modRevision]);
  expect(hasResponded).toBe(false);
  known.resolve();
  await requested;
});

test("a second change of a user is refused with the operation; a second deletion joins the first", async () => {
  const id = await aRunningService();
  const removal: EngineChange = { type: "delete_user", username: "u" };
  const first = await changes(1).apply(requestOf(id, removal), callWith());
  expect((await changes(1).apply(requestOf(id, removal), callWith())).operation?.id).toBe(first.operation?.id);
  await expect(changes(1).apply(requestOf(id), callWith())).rejects.toMatchObject({
    key: "OPERATION_IN_PROGRESS",
    members: { operation: { id: first.operation?.id } },
  });
  await end(id, { kind: "applied", role: "" });
  await waitUntil("nothing is under way", () => changes(1).of(id).length === 0);
});

test("a refusal has the engine's message, and no response is stored for its key", async () => {
  const id = await aRunningService();
  const call = callWith(uuidv7());
  const requested = changes(600_000).apply(requestOf(id), call);
  await end(id, { kind: "fail", code: "engine_refused", message: "no" });
  await expect(requested).rejects.toMatchObject({ key: "ENGINE_REFUSED", detail: "no" });
  expect(await stored(call)).toBeUndefined();
  expect(await collections.databaseUsers.getCurrent(`${id}.u`)).toBeUndefined();
});

test("nothing is stored for a machine that is not connected", async () => {
  const id = await aRunningService();
  const requested = changes(1, { connected: false }).apply(requestOf(id), callWith(uuidv7()));
  await expect(requested).rejects.toMatchObject({ key: "MACHINE_UNREACHABLE" });
  expect([...collections.engineChanges.values()].filter(({ object }) => object.spec.serviceId === id)).toEqual([]);
});
