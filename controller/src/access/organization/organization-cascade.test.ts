import { afterAll, beforeAll, expect, test } from "vitest";
import { settled } from "#kernel/runtime/reconciler.ts";
import { keyOf, type Resource } from "#kernel/store/resource.ts";
import type { AnyKind } from "#kernel/store/kind.ts";
import type { Store } from "#kernel/store/store.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { organizationKind } from "./organization.ts";
import { createOrganizationCascade } from "./organization-cascade.ts";

let testStore: TestStore;
let store: Store;
let collections: TestStore["collections"];

beforeAll(async () => {
  testStore = await startTestStore();
  ({ store, collections } = testStore);
});
afterAll(() => testStore?.close());

const signal = new AbortController().signal;

async function put(kind: string, id: string, organizationId: string): Promise<void> {
  const metadata = { id, name: id, organizationId, generation: 1, createdAt: 0, updatedAt: 0 };
  const object: Resource<object, object> = { metadata, spec: {}, status: {} };
  const value = JSON.stringify(object);
  await store.commit({ conditions: [], puts: [{ key: keyOf({ name: kind }, id), value }], deletes: [] });
  await collections.untilRevision(await store.revision(), 60_000);
}

async function keysLeft(): Promise<string[]> {
  const { values } = await store.list("/holdfast/v1/", { limit: 500 });
  return values.map(({ key }) => key.slice("/holdfast/v1/".length));
}

/** Reconciles each of its keys until there is none, as the runner would. */
async function converge(): Promise<void> {
  const { reconciler, keys } = createOrganizationCascade({ kinds: collections.set, store });
  for (const key of keys()) {
    while (!(await reconciler.reconcile(key, signal)).done)
      await collections.untilRevision(await store.revision(), 60_000);
  }
}

test("all objects of a deleted organization are deleted, and none of another", async () => {
  await put("organization", "there", "");
  for (const organization of ["there", "gone"]) {
    await put("membership", `${organization}.anna`, organization);
    await put("api-key", `hfk_${organization}`, organization);
    await put("credential-use", `hfk_${organization}`, organization);
    await put("webhook", `webhook-of-${organization}`, organization);
  }
  for (let i = 0; i < 120; i += 1) await put("token", `token-${String(i).padStart(3, "0")}`, "gone");
  await converge();
  expect((await keysLeft()).sort()).toEqual(
    [
      "api-key/hfk_there",
      "credential-use/hfk_there",
      "membership/there.anna",
      "organization/there",
      "webhook/webhook-of-there",
    ].sort(),
  );
});

test("objects of the platform belong to no organization and are not deleted", async () => {
  await put("webhook", "of-the-platform", "");
  await converge();
  expect(await keysLeft()).toContain("webhook/of-the-platform");
  const { reconciler } = createOrganizationCascade({ kinds: collections.set, store });
  expect(await reconciler.reconcile("", signal)).toEqual(settled);
  expect(await keysLeft()).toContain("webhook/of-the-platform");
});

test("objects of an organization that the collection lacks are not deleted", async () => {
  await put("webhook", "early", "unseen");
  const { set } = collections;
  const open = ((kind: AnyKind) =>
    kind.name === organizationKind.name
      ? { ...set.open(kind), get: () => undefined }
      : set.open(kind)) as typeof set.open;
  await put("organization", "unseen", "");
  const { reconciler } = createOrganizationCascade({ kinds: { ...set, open }, store });
  expect(await reconciler.reconcile("unseen", signal)).toMatchObject({ done: false });
  expect(await keysLeft()).toContain("webhook/early");
});
