import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { createCollection } from "./collection.ts";
import { createEtcdStore } from "./etcd-store.ts";
import { keyOf, type Resource } from "./resource.ts";
import type { Store } from "./store.ts";
import { defineKind } from "./kind.ts";

type Thing = Resource<{ size: number }, { state: string }>;
const thingKind = defineKind<Thing>("managed-service");

let etcd: TestEtcd;
let store: Store;
let made = 0;

beforeAll(async () => {
  etcd = await startTestEtcd();
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
});
afterAll(async () => {
  await store?.close();
  await etcd?.stop();
});

function thing(organizationId: string, size = 1): Thing {
  made += 1;
  const id = `id-${String(made).padStart(6, "0")}`;
  const metadata = { id, name: id, organizationId, generation: 1, createdAt: 0, updatedAt: 0 };
  return { metadata, spec: { size }, status: { state: "new" } };
}

async function put(object: Thing): Promise<bigint> {
  const key = keyOf(thingKind, object.metadata.id);
  const done = await store.commit({ conditions: [], puts: [{ key, value: JSON.stringify(object) }], deletes: [] });
  if (!done.committed) throw new Error("not committed");
  return done.revision;
}

test("a collection has the writes before and after its start, with their revisions", async () => {
  const before = thing("a");
  const first = await put(before);
  const things = createCollection(store, thingKind);
  await things.ready;
  expect(things.get(before.metadata.id)).toEqual({ object: before, modRevision: first });
  const after = thing("a");
  const changed: string[] = [];
  things.subscribe((id) => changed.push(id));
  await things.untilRevision(await put(after), 60_000);
  expect(things.get(after.metadata.id)?.object).toEqual(after);
  expect(changed).toEqual([after.metadata.id]);
  expect(things.size).toBe(2);
  await store.commit({ conditions: [], puts: [], deletes: [keyOf(thingKind, after.metadata.id)] });
  await things.untilRevision(await store.revision(), 60_000);
  expect(things.get(after.metadata.id)).toBeUndefined();
  expect(await things.getCurrent(after.metadata.id)).toBeUndefined();
  things.close();
});

test("a revision of other kinds is reached as well, a future one is not", async () => {
  const things = createCollection(store, thingKind);
  await things.ready;
  const done = await store.commit({ conditions: [], puts: [{ key: "/holdfast/v1/x/1", value: "1" }], deletes: [] });
  await things.untilRevision(done.committed ? done.revision : 0n, 60_000);
  await expect(things.untilRevision(1_000_000n, 100)).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
  things.close();
});

test("pages respect organization and filter, in order of age", async () => {
  const mine = [];
  for (let i = 0; i < 12; i += 1) {
    mine.push(thing("pager", i));
    await put(thing("other", i));
  }
  for (const object of mine.toReversed()) await put(object);
  const things = createCollection(store, thingKind);
  await things.ready;
  const sizes: number[] = [];
  let after: string | undefined;
  do {
    const page = things.page(({ spec }) => spec.size % 2 === 0, { organizationId: "pager", after, limit: 4 });
    expect(page.items.length).toBeLessThanOrEqual(4);
    sizes.push(...page.items.map(({ object }) => object.spec.size));
    after = page.next;
  } while (after !== undefined);
  expect(sizes).toEqual([0, 2, 4, 6, 8, 10]);
  things.close();
});

test("a page scans a bounded number of objects, however few match", async () => {
  const things = createCollection(store, thingKind);
  await things.ready;
  let looked = 0;
  const page = things.page(
    () => {
      looked += 1;
      return false;
    },
    { after: undefined, limit: 1 },
    { maxScanned: 5 },
  );
  expect(looked).toBe(5);
  expect(page.items).toEqual([]);
  expect(page.next).toBeDefined();
  things.close();
});

test("a page of large objects ends at 1 MiB, and the next one continues after it", async () => {
  const large = "x".repeat(200 * 1024);
  const written = Array.from({ length: 12 }, (_, place) => ({ ...thing("large"), spec: { size: place, large } }));
  for (const object of written) await put(object);
  const things = createCollection(store, thingKind);
  await things.ready;
  const pages: number[][] = [];
  let after: string | undefined;
  do {
    const { items, next } = things.page(() => true, { organizationId: "large", after, limit: 100 });
    pages.push(items.map(({ object }) => object.spec.size));
    after = next;
  } while (after !== undefined);
  expect(pages.map(({ length }) => length)).toEqual([5, 5, 2]);
  expect(pages.flat()).toEqual(written.map(({ spec }) => spec.size));
  // A read without a limit returns all objects.
  expect(things.page(() => true, { organizationId: "large", after: undefined, limit: Infinity }).items.length).toBe(12);
  for (const { metadata } of written)
    await store.commit({ conditions: [], puts: [], deletes: [keyOf(thingKind, metadata.id)] });
  things.close();
});

test("fields of a later version are preserved", async () => {
  const odd = { ...thing("future"), later: { retained: true } };
  await put(odd);
  const things = createCollection(store, thingKind);
  await things.ready;
  expect(things.get(odd.metadata.id)?.object).toEqual(odd);
  things.close();
});

test("a page ends at 1 MiB, the next one continues there, and an unlimited page has all", async () => {
  const things = createCollection(store, thingKind);
  await things.ready;
  const large = Array.from({ length: 12 }, () => thing("large"));
  for (const each of large) await put({ ...each, status: { state: "x".repeat(200_000) } });
  await things.untilRevision(await store.revision(), 60_000);
  const seen: string[] = [];
  const counts: number[] = [];
  for (let after: string | undefined; ; ) {
    const { items, next } = things.page(() => true, { after, limit: 200, organizationId: "large" });
    counts.push(items.length);
    seen.push(...items.map(({ object }) => object.metadata.id));
    if (next === undefined) break;
    after = next;
  }
  expect(counts).toEqual([5, 5, 2]);
  expect(seen).toEqual(large.map(({ metadata }) => metadata.id));
  const all = { after: undefined, limit: Number.POSITIVE_INFINITY, organizationId: "large" };
  expect(things.page(() => true, all, { maxScanned: Number.POSITIVE_INFINITY }).items).toHaveLength(12);
  things.close();
});

test("an index follows creations, changes and deletions of objects", async () => {
  const homeOf = ({ spec }: Thing) => (spec.size === 0 ? undefined : `home-${spec.size}`);
  const indexed = defineKind<Thing>("managed-service", { indexes: [homeOf] });
  const early = thing("index", 71);
  await put(early);
  const things = createCollection(store, indexed);
  await things.ready;
  const late = thing("index", 71);
  const seen: (number | undefined)[] = [];
  things.subscribe((id, before) => id === early.metadata.id && seen.push(before?.spec.size));
  await things.untilRevision(await put(late), 60_000);
  const ids = (key: string) => things.by(homeOf, key).map(({ object }) => object.metadata.id);
  expect(ids("home-71")).toEqual([early.metadata.id, late.metadata.id]);
  await things.untilRevision(await put({ ...early, spec: { size: 72 } }), 60_000);
  expect([ids("home-71"), ids("home-72")]).toEqual([[late.metadata.id], [early.metadata.id]]);
  await things.untilRevision(await put({ ...early, spec: { size: 0 } }), 60_000);
  expect(ids("home-72")).toEqual([]);
  await store.commit({ conditions: [], puts: [], deletes: [keyOf(indexed, late.metadata.id)] });
  await things.untilRevision(await store.revision(), 60_000);
  expect(ids("home-71")).toEqual([]);
  expect([...things.keysOf(homeOf)]).not.toContain("home-71");
  expect(seen).toEqual([71, 72]);
  expect(() => things.by(() => "elsewhere", "elsewhere")).toThrow("has no index");
  things.close();
});
