import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "../../../test/support/etcd.ts";
import { createCollection } from "./collection.ts";
import { createEtcdStore } from "./etcd-store.ts";
import { keyOf, type Resource } from "./resource.ts";
import type { Store } from "./store.ts";

type Thing = Resource<{ size: number }, { state: string }>;

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
  const key = keyOf("managed-service", object.metadata.id);
  const done = await store.commit({ conditions: [], puts: [{ key, value: JSON.stringify(object) }], deletes: [] });
  if (!done.committed) throw new Error("not committed");
  return done.revision;
}

test("what was written before and after it began is there, at its revision", async () => {
  const before = thing("a");
  const first = await put(before);
  const things = createCollection<Thing>(store, "managed-service");
  await things.ready;
  expect(things.get(before.metadata.id)).toEqual({ object: before, modRevision: first });
  const after = thing("a");
  const changed: string[] = [];
  things.subscribe((id) => changed.push(id));
  await things.reached(await put(after), 60_000);
  expect(things.get(after.metadata.id)?.object).toEqual(after);
  expect(changed).toEqual([after.metadata.id]);
  expect(things.size).toBe(2);
  await store.commit({ conditions: [], puts: [], deletes: [keyOf("managed-service", after.metadata.id)] });
  await things.reached(await store.revision(), 60_000);
  expect(things.get(after.metadata.id)).toBeUndefined();
  expect(await things.fresh(after.metadata.id)).toBeUndefined();
  things.close();
});

test("a revision that changed other things is reached as well, and one that never came is not", async () => {
  const things = createCollection<Thing>(store, "managed-service");
  await things.ready;
  const done = await store.commit({ conditions: [], puts: [{ key: "/holdfast/v1/x/1", value: "1" }], deletes: [] });
  await things.reached(done.committed ? done.revision : 0n, 60_000);
  await expect(things.reached(1_000_000n, 100)).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
  things.close();
});

test("pages keep to their organization and filter, in order of age", async () => {
  const mine = [];
  for (let i = 0; i < 12; i += 1) {
    mine.push(thing("pager", i));
    await put(thing("other", i));
  }
  for (const object of mine.toReversed()) await put(object);
  const things = createCollection<Thing>(store, "managed-service");
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

test("a page looks at a bounded number of objects, however few the filter leaves", async () => {
  const things = createCollection<Thing>(store, "managed-service");
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

test("fields of a later version survive", async () => {
  const odd = { ...thing("future"), later: { kept: true } };
  await put(odd);
  const things = createCollection<Thing>(store, "managed-service");
  await things.ready;
  expect(things.get(odd.metadata.id)?.object).toEqual(odd);
  things.close();
});
