import { randomBytes } from "node:crypto";
import type { AnyMessage, Call, Idempotency } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { outboxPrefix } from "./outbox-entry.ts";
import { createSealer } from "../secrets/sealer.ts";
import { createEtcdStore } from "./etcd-store.ts";
import { createStoredResponses } from "./stored-responses.ts";
import { keyOf, type Resource, root } from "./resource.ts";
import type { Store } from "./store.ts";
import type { NewAudit, NewEvent } from "./outbox-entry.ts";
import { AlreadyResponded, Conflict, createUnitOfWork } from "./unit-of-work.ts";
import { defineKind } from "./kind.ts";

type Thing = Resource<{ size: number }, Record<string, never>>;
const thingKind = defineKind<Thing>("managed-service");

let etcd: TestEtcd;
let store: Store;
let now = Date.parse("2026-01-01T00:00:00Z");
const clock = { now: () => now, monotonicMs: () => now };
const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
let full = false;
const outbox = {
  admit() {
    if (full) throw new HoldfastError("STORE_UNAVAILABLE", "full");
  },
};

beforeAll(async () => {
  etcd = await startTestEtcd();
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
});
afterAll(async () => {
  await store?.close();
  await etcd?.stop();
});

const begin = () => createUnitOfWork(store, { outbox, sealer, clock, ids: uuidv7 });

function thing(name: string): Thing {
  const metadata = { id: uuidv7(), name, organizationId: "o", generation: 1, createdAt: now, updatedAt: now };
  return { metadata, spec: { size: 1 }, status: {} };
}

async function stored(object: Thing) {
  const value = await store.get(keyOf(thingKind, object.metadata.id));
  return value && { object: JSON.parse(value.value) as Thing, modRevision: value.modRevision };
}

const event = (objectId: string): NewEvent => ({
  type: "service.created",
  organizationId: "o",
  objectKind: "managed-service",
  objectId,
  data: { name: "x" },
});
const audit = (objectId: string): NewAudit => ({
  organizationId: "o",
  actor: "anna",
  source: "127.0.0.1",
  action: "managed-service.create",
  objectKind: "managed-service",
  objectId,
  result: "ok",
  requestId: "r",
});

function callWith(idempotency: Partial<Idempotency> & { key: string }, secret = false): Call {
  return {
    idempotency: {
      scope: "o POST /managed-services",
      bodyHash: "h",
      encode: (answer: AnyMessage) => ({ status: 202, headers: {}, body: JSON.stringify(answer), secret }),
      ...idempotency,
    },
  } as Partial<Call> as Call;
}
const message = (text: string) => ({ $typeName: text }) as AnyMessage;

test("object, name, event, audit entry and response are committed in one transaction", async () => {
  const object = thing("one");
  const unit = begin();
  unit.claimName(thingKind, "o", "one", object.metadata.id);
  unit.create(thingKind, object);
  unit.event(event(object.metadata.id));
  unit.audit(audit(object.metadata.id));
  const call = callWith({ key: "k1" });
  unit.storeResponse(call, message("hello"));
  const revision = await unit.commit();
  expect(await stored(object)).toEqual({ object, modRevision: revision });
  const { values } = await store.list(outboxPrefix, { limit: 10 });
  expect(values.map(({ value }) => JSON.parse(value))).toMatchObject([
    { entry: "event", type: "service.created", occurredAt: now },
    { entry: "audit", actor: "anna", occurredAt: now },
  ]);
  expect(values.every((value) => value.createRevision === revision)).toBe(true);
  const answers = createStoredResponses({ store, sealer, clock });
  const { idempotency } = call;
  expect(idempotency && (await answers.find(idempotency))).toMatchObject({ status: 202, secret: false });
});

test("a taken name, a changed object and an answered call have distinct errors", async () => {
  const object = thing("two");
  const first = begin();
  first.claimName(thingKind, "o", "two", object.metadata.id);
  first.create(thingKind, object);
  first.storeResponse(callWith({ key: "k2" }), message("first"));
  await first.commit();

  const again = begin();
  again.claimName(thingKind, "o", "two", "another");
  again.create(thingKind, thing("two"));
  await expect(again.commit()).rejects.toMatchObject({ key: "NAME_TAKEN" });

  const repeated = begin();
  repeated.claimName(thingKind, "o", "two", "another");
  repeated.storeResponse(callWith({ key: "k2" }), message("second"));
  await expect(repeated.commit()).rejects.toThrow(AlreadyResponded);

  const before = await stored(object);
  if (before === undefined) throw new Error("it is there");
  const [left, right] = [begin(), begin()];
  left.update(thingKind, before, { ...before.object, spec: { size: 2 } });
  right.update(thingKind, before, { ...before.object, spec: { size: 3 } });
  await left.commit();
  await expect(right.commit()).rejects.toThrow(Conflict);
});

test("a deleted object's name can be claimed again", async () => {
  const object = thing("three");
  const make = begin();
  make.claimName(thingKind, "o", "three", object.metadata.id);
  make.create(thingKind, object);
  await make.commit();
  const before = await stored(object);
  if (before === undefined) throw new Error("it is there");
  const remove = begin();
  remove.remove(thingKind, before);
  remove.releaseName(thingKind, "o", "three");
  await remove.commit();
  const again = begin();
  again.claimName(thingKind, "o", "three", "x");
  await again.commit();
});

test("nothing is written once the ownership is lost", async () => {
  const unit = begin();
  unit.create(thingKind, thing("four"));
  unit.onlyWhile({ key: `${root}/shard/1`, modRevision: 77n });
  await expect(unit.commit()).rejects.toThrow(Conflict);
});

test("nothing is written while the outbox is full", async () => {
  full = true;
  const unit = begin();
  const object = thing("five");
  unit.create(thingKind, object);
  unit.audit(audit(object.metadata.id));
  await expect(unit.commit()).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
  full = false;
  expect(await stored(object)).toBeUndefined();
});

test("a stored response is bound to its body, sealed when secret, and expires after a day", async () => {
  const answers = createStoredResponses({ store, sealer, clock });
  const { idempotency } = callWith({ key: "k5" });
  if (idempotency === undefined) throw new Error("it has one");
  const answer = { status: 201, headers: { location: "/x" }, body: "the password", secret: true };
  await answers.store(idempotency, answer);
  await answers.store(idempotency, { ...answer, body: "another" });
  expect(await answers.find(idempotency)).toEqual(answer);
  await expect(answers.find({ ...idempotency, bodyHash: "other" })).rejects.toMatchObject({
    key: "IDEMPOTENCY_KEY_REUSED",
  });
  expect(await answers.find({ ...idempotency, scope: "another credential" })).toBeUndefined();
  const { values } = await store.list(root, { limit: 500 });
  expect(JSON.stringify(values.map(({ value }) => value))).not.toContain("the password");
  now += 24 * 3_600_000;
  expect(await answers.find(idempotency)).toBeUndefined();
  expect(await answers.sweep(new AbortController().signal)).toBe(2);
});
