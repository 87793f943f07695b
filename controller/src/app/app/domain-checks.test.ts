import { silentLog } from "@holdfast/common/log.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Collection, createCollection } from "#kernel/store/collection.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import { type AppObject, appKind, type DomainSpec } from "./app.ts";
import { createDomainChecks } from "./domain-checks.ts";

const day = 86_400_000;
const { signal } = new AbortController();

let store: TestStore;
let apps: Collection<AppObject>;
let now = 1_000 * day;
let records = new Map<string, readonly string[] | undefined>();
let queried: string[] = [];

beforeAll(async () => {
  store = await startTestStore();
  apps = createCollection(store.store, appKind);
  await apps.ready;
});
afterAll(async () => {
  apps?.close();
  await store?.close();
});

const domain = (name: string): DomainSpec => ({ id: name, name, token: name, createdAt: now, verifiedAt: now });

async function create(id: string, ...domains: DomainSpec[]): Promise<void> {
  const unit = store.begin();
  const metadata = newMetadata(id, now, { name: id, organizationId: "o" });
  unit.create(appKind, { metadata, spec: { homeUrl: null, attachments: [], domains }, status: {} });
  await apps.untilRevision(await unit.commit(), 5_000);
}

const { reconciler } = createDomainChecks({
  apps: { ids: () => apps.ids(), getCurrent: (id, of) => apps.getCurrent(id, of) },
  lookUpTxt: async (name) => {
    queried.push(name);
    const found = records.get(name);
    if (found === undefined) throw new Error("no response");
    return found;
  },
  isIssuer: (_, name) => name === "login.example",
  isPaused: () => false,
  begin: () => store.begin(),
  clock: { ...systemClock, now: () => now },
  log: silentLog,
});

/** Runs the checks after this time; returns the domains that are verified then. */
async function verifiedAfter(ms: number): Promise<readonly string[]> {
  now += ms;
  queried = [];
  await reconciler.reconcile("domain-checks", signal);
  const { domains = [] } = (await apps.getCurrent("shop"))?.object.spec ?? {};
  return domains.filter(({ verifiedAt }) => verifiedAt !== null).map(({ name }) => name);
}

test("a domain loses its verification three days after its record was first missing, and an issuer's never", async () => {
  const all = ["a.example", "b.example", "c.example", "login.example"];
  await create("shop", ...all.map(domain));
  records = new Map([
    ["_holdfast.a.example", ["holdfast-domain=a.example"]],
    ["_holdfast.b.example", ["other"]],
    ["_holdfast.c.example", undefined],
  ]);
  expect(await verifiedAfter(day - 1)).toEqual(all);
  expect(queried).toEqual([]);
  expect(await verifiedAfter(1)).toEqual(all);
  expect(queried).toEqual(["_holdfast.a.example", "_holdfast.b.example", "_holdfast.c.example"]);
  expect(await verifiedAfter(day - 1)).toEqual(all);
  // A name server that does not respond is asked again in the next round, and proves nothing.
  expect(queried).toEqual(["_holdfast.c.example"]);
  expect(await verifiedAfter(day)).toEqual(all);
  expect(await verifiedAfter(day)).toEqual(all);
  expect(await verifiedAfter(day)).toEqual(["a.example", "c.example", "login.example"]);
});

test("a record that is found again in time ends the count", async () => {
  records = new Map([["_holdfast.a.example", []]]);
  expect(await verifiedAfter(day)).toContain("a.example");
  records.set("_holdfast.a.example", ["holdfast-domain=a.example"]);
  expect(await verifiedAfter(2 * day)).toContain("a.example");
  records.set("_holdfast.a.example", []);
  expect(await verifiedAfter(2 * day)).toContain("a.example");
});
