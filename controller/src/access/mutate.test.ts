import { randomBytes } from "node:crypto";
import type { AnyMessage, Call, Idempotency } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { testCall } from "@holdfast/testing/api/test-call.ts";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { createSealer } from "../kernel/secrets/sealer.ts";
import { createEtcdStore } from "../kernel/store/etcd-store.ts";
import { defineKind } from "../kernel/store/kind.ts";
import { outboxPrefix } from "../kernel/store/outbox-entry.ts";
import { keyOf, newMetadata, type Resource, type Stored } from "../kernel/store/resource.ts";
import type { Store } from "../kernel/store/store.ts";
import { createStoredResponses } from "../kernel/store/stored-responses.ts";
import { createUnitOfWork } from "../kernel/store/unit-of-work.ts";
import { mutate } from "./mutate.ts";

type Thing = Resource<{ size: number }, Record<string, never>>;
const thingKind = defineKind<Thing>("managed-service");
const clock = { now: () => 1, monotonicMs: () => 1 };
const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });

let etcd: TestEtcd;
let store: Store;
beforeAll(async () => {
  etcd = await startTestEtcd();
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
});
afterAll(async () => {
  await store?.close();
  await etcd?.stop();
});

const deps = { begin: () => createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock, ids: uuidv7 }) };
const mutation = { action: "managed-service.update", kind: "managed-service", visibleIn: [] } as const;
const message = (text: string) => ({ $typeName: text }) as AnyMessage;

function callWith(key: string): { readonly call: Call; readonly headers: Map<string, string> } {
  const headers = new Map<string, string>();
  const idempotency = {
    key,
    scope: "o POST /things",
    bodyHash: "h",
    encode: (answer: AnyMessage) => ({ status: 200, headers: {}, body: JSON.stringify(answer), secret: false }),
  } as Partial<Idempotency> as Idempotency;
  return { call: testCall({ idempotency, setHeader: (name, value) => void headers.set(name, value) }), headers };
}

const audits = async (id: string) =>
  (await store.list(outboxPrefix, { limit: 100 })).values
    .map(({ value }) => JSON.parse(value))
    .filter(({ entry, objectId }) => entry === "audit" && objectId === id);

async function read(id: string): Promise<Stored<Thing>> {
  const value = await store.get(keyOf(thingKind, id));
  if (value === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such thing.");
  return { object: JSON.parse(value.value) as Thing, modRevision: value.modRevision };
}

async function add(): Promise<string> {
  const id = uuidv7();
  const unit = deps.begin();
  unit.create(thingKind, { metadata: newMetadata(id, 1, { organizationId: "o" }), spec: { size: 0 }, status: {} });
  await unit.commit();
  return id;
}

const grown = (thing: Thing): Thing => ({ ...thing, spec: { size: thing.spec.size + 1 } });

test("change, audit entry and response are one transaction, and the caller gets its revision", async () => {
  const id = await add();
  const { call, headers } = callWith("one");
  const response = await mutate(deps, call, mutation, async (unit) => {
    const before = await read(id);
    unit.update(thingKind, before, grown(before.object));
    return { id, detail: "size", etag: '"2"', response: message("grown") };
  });
  expect(response).toEqual(message("grown"));
  const { object, modRevision } = await read(id);
  expect(object.spec.size).toBe(1);
  expect([...headers]).toEqual([
    ["Holdfast-Revision", String(modRevision)],
    ["ETag", '"2"'],
  ]);
  expect(await audits(id)).toMatchObject([
    { organizationId: "o", actor: "user:anna", action: "managed-service.update", detail: "size", result: "ok" },
  ]);
  const answers = createStoredResponses({ store, sealer, clock });
  expect(call.idempotency && (await answers.find(call.idempotency))?.body).toBe('{"$typeName":"grown"}');
});

test("concurrent changes are each made once, after a conflict from a new read, with one audit entry each", async () => {
  const id = await add();
  let reads = 0;
  const sizes = await Promise.all(
    Array.from({ length: 5 }, () =>
      mutate(deps, testCall(), mutation, async (unit) => {
        const before = await read(id);
        reads += 1;
        unit.update(thingKind, before, grown(before.object));
        return { id, result: before.object.spec.size + 1 };
      }),
    ),
  );
  expect(sizes.toSorted()).toEqual([1, 2, 3, 4, 5]);
  expect(reads).toBeGreaterThan(5);
  expect(await audits(id)).toHaveLength(5);
});

test("forty concurrent changes of one object are all made", async () => {
  const id = await add();
  const change = () =>
    mutate(deps, testCall(), mutation, async (unit) => {
      const before = await read(id);
      unit.update(thingKind, before, grown(before.object));
      return { id, result: undefined };
    });
  await Promise.all(Array.from({ length: 40 }, change));
  expect((await read(id)).object.spec.size).toBe(40);
});

test("a change whose credential ends while it runs is refused and writes nothing", async () => {
  const [id, credential] = [await add(), await add()];
  let seen = await read(credential);
  const preconditions = () => {
    if (seen.object.spec.size > 0) throw new HoldfastError("UNAUTHENTICATED", "It ended.");
    return [{ key: keyOf(thingKind, credential), modRevision: seen.modRevision }];
  };
  const { principal } = testCall();
  const call = testCall({ ...(principal && { principal: { ...principal, preconditions } }) });
  const raced = mutate(deps, call, mutation, async (unit) => {
    const before = await read(id);
    unit.update(thingKind, before, grown(before.object));
    // The preconditions of this attempt are taken, and the credential ends before its commit.
    const end = deps.begin();
    end.update(thingKind, seen, grown(seen.object));
    await end.commit();
    seen = await read(credential);
    return { id, result: undefined };
  });
  await expect(raced).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
  expect([(await read(id)).object.spec.size, await audits(id)]).toEqual([0, []]);
});

test("a request that needs no change, and one that is refused, write nothing", async () => {
  const id = await add();
  const { call, headers } = callWith("two");
  expect(await mutate(deps, call, mutation, () => ({ unchanged: "as it is" }))).toBe("as it is");
  const refused = mutate(deps, call, mutation, async (unit) => {
    const before = await read(id);
    unit.update(thingKind, before, grown(before.object));
    throw new HoldfastError("WRONG_STATE", "It is busy.");
  });
  await expect(refused).rejects.toMatchObject({ key: "WRONG_STATE" });
  expect([(await read(id)).object.spec.size, await audits(id), headers.size]).toEqual([0, [], 0]);
});

test("a failed commit undoes what the change claimed elsewhere; a lagging collection fails nothing", async () => {
  const id = await add();
  let undone = 0;
  const taken = mutate(deps, testCall(), mutation, (unit) => {
    unit.create(thingKind, { metadata: newMetadata(id, 1, {}), spec: { size: 0 }, status: {} });
    unit.claimName(thingKind, "o", "name", id);
    return { id, result: undefined, undo: () => void (undone += 1) };
  });
  await expect(taken).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
  expect(undone).toBe(12);
  const lagging = { untilRevision: () => Promise.reject(new HoldfastError("STORE_UNAVAILABLE", "It lags.")) };
  const seen = mutate(deps, testCall(), { ...mutation, visibleIn: [lagging] }, () => ({ id, result: "done" }));
  expect(await seen).toBe("done");
});
