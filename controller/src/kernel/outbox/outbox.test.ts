import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { startTestOutboxStores, type TestOutboxStores } from "@holdfast/testing/controller/test-outbox-stores.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import type { History } from "../history/history.ts";
import { soleOwner } from "@holdfast/testing/controller/sole-owner.ts";
import type { Store, WatchHandler } from "../store/store.ts";
import { createUnitOfWork } from "../store/unit-of-work.ts";
import type { NewAudit } from "../store/outbox-entry.ts";
import { createOutbox, type Outbox } from "./outbox.ts";
import { type OutboxEntry, outboxPrefix } from "../store/outbox-entry.ts";

let stores: TestOutboxStores;
let store: Store;
let history: History;

beforeAll(async () => {
  stores = await startTestOutboxStores();
  ({ store, history } = stores);
});
afterAll(() => stores?.close());

function open(
  overrides: {
    ownership?: typeof soleOwner;
    store?: Store;
    history?: { insert(entries: readonly OutboxEntry[]): Promise<unknown> };
  } = {},
): Outbox {
  const deps = {
    store,
    history: { insert: (entries: readonly OutboxEntry[]) => history.insert(entries) },
    ownership: soleOwner,
    clock: systemClock,
    ids: uuidv7,
    random: () => 0,
    log: silentLog,
  };
  const outbox = createOutbox({ ...deps, ...overrides });
  onTestFinished(() => outbox.stop());
  return outbox;
}

const sealer = {
  seal: (text: string) => text,
  sealDeterministic: (text: string) => text,
  open: (text: string) => text,
  keyedHash: (_: string, text: string) => text,
};

/** A change with one event. */
async function change(organizationId: string, type: string): Promise<void> {
  const unit = createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock: systemClock, ids: uuidv7 });
  unit.event({ type, organizationId, objectKind: "managed-service", objectId: "s", data: {} });
  await unit.commit();
}

const audit = (organizationId: string): NewAudit => ({
  organizationId,
  actor: "anna",
  source: "127.0.0.1",
  action: "database-user.reveal-password",
  objectKind: "database-user",
  objectId: "u",
  result: "ok",
  requestId: "r",
});

async function types(organizationId: string): Promise<string[]> {
  const all = { after: undefined, limit: 200, order: "oldest first" } as const;
  return (await history.events({ organizationId }, all)).items.map(({ type }) => type);
}

async function waitingKeys(): Promise<number> {
  return (await store.list(outboxPrefix, { limit: 500 })).values.length;
}

const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => String(from + i));

test("waiting and new entries move to the history in the order of their changes", async () => {
  for (const n of numbers(0, 5)) await change("moved", n);
  const outbox = open();
  for (const n of numbers(5, 150)) await change("moved", n);
  await until(async () => (await waitingKeys()) === 0);
  expect(await types("moved")).toEqual(numbers(0, 150));
  await until(() => outbox.waiting === 0);
});

test("only the owner moves entries", async () => {
  const inserted: unknown[] = [];
  const other = open({
    ownership: { ...soleOwner, owns: () => false, begin: () => undefined },
    history: { insert: async (entries) => inserted.push(...entries) },
  });
  await change("owned", "x");
  await until(() => other.waiting === 1);
  open();
  await until(async () => (await types("owned")).length === 1);
  await until(async () => (await waitingKeys()) === 0);
  // Each watches both the entry and its deletion.
  await until(() => other.waiting === 0);
  expect(inserted).toEqual([]);
});

test("after a crash between insert and delete, nothing is inserted twice", async () => {
  await change("died", "x");
  const dying: Store = { ...store, commit: () => Promise.reject(new Error("killed")) };
  const first = open({ store: dying });
  await until(async () => (await types("died")).length === 1);
  await first.stop();
  expect(await waitingKeys()).toBe(1);
  open();
  await until(async () => (await waitingKeys()) === 0);
  expect(await types("died")).toEqual(["x"]);
});

test("without the history entries wait; it recovers by itself", async () => {
  const outbox = open();
  await stores.postgresql.kill();
  for (const n of numbers(0, 20)) await change("away", n);
  outbox.auditSoon(audit("soon"));
  await until(() => outbox.waiting >= 20);
  await stores.postgresql.start();
  await until(async () => (await types("away").catch(() => [])).length === 20);
  await until(async () => (await waitingKeys()) === 0);
  const all = { after: undefined, limit: 10, order: "oldest first" } as const;
  const audited = async (organizationId: string) => (await history.audit({ organizationId }, all)).items.length;
  // The entry may be moved in a later batch than the events.
  await until(async () => (await audited("soon")) === 1);
});

test("refused calls survive a killed controller while the history is unavailable", async () => {
  const away = { insert: () => Promise.reject(new Error("the history is away")) };
  const killed = open({ history: away });
  killed.auditSoon(audit("refused"));
  await until(async () => (await waitingKeys()) === 1);
  open();
  const all = { after: undefined, limit: 10, order: "oldest first" } as const;
  const audited = async () => (await history.audit({ organizationId: "refused" }, all)).items.length;
  await until(async () => (await audited()) === 1);
  await until(async () => (await waitingKeys()) === 0);
  expect(await audited()).toBe(1);
});

test("a full outbox refuses changes by users first, then those of the platform", async () => {
  let handler: WatchHandler | undefined;
  const watched: Store = {
    ...store,
    watch(_prefix, given) {
      handler = given;
      return { close() {}, requestProgress() {}, listAgain() {} };
    },
  };
  const outbox = open({ store: watched, ownership: { ...soleOwner, owns: () => false } });
  const put = (n: number) =>
    handler?.put({ key: String(n), value: "{}", modRevision: 1n, createRevision: 1n, leased: false });
  for (let n = 0; n < 19_999; n += 1) put(n);
  outbox.admit("user");
  put(19_999);
  expect(() => outbox.admit("user")).toThrow("STORE_UNAVAILABLE");
  outbox.admit("platform");
  for (let n = 20_000; n < 40_000; n += 1) put(n);
  expect(() => outbox.admit("platform")).toThrow("STORE_UNAVAILABLE");
});
