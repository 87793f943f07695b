import { systemClock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { soleOwner } from "@holdfast/testing/controller/sole-owner.ts";
import { startTestOutboxStores, type TestOutboxStores } from "@holdfast/testing/controller/test-outbox-stores.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { History } from "../history/history.ts";
import type { NewAudit, OutboxEntry } from "../store/outbox-entry.ts";
import type { Store } from "../store/store.ts";
import { pendingPrefix, createAuditedActs } from "./audited-acts.ts";
import { createOutbox } from "./outbox.ts";

let stores: TestOutboxStores;
let store: Store;
let history: History;

beforeAll(async () => {
  stores = await startTestOutboxStores();
  ({ store, history } = stores);
});
afterAll(() => stores?.close());

const minuteMs = 60_000;
const parts = { clock: systemClock, ids: uuidv7, log: silentLog };
const insert = (entries: readonly OutboxEntry[]) => history.insert(entries);

/** Audited acts of a controller, whose clock is ahead by `aheadMs` and whose commits after the first may fail. */
function open({ aheadMs = 0, commits = Number.POSITIVE_INFINITY } = {}) {
  const outbox = createOutbox({ ...parts, store, history: { insert }, ownership: soleOwner, random: () => 0 });
  onTestFinished(() => outbox.stop());
  let left = commits;
  const limited: Store = {
    ...store,
    commit: (...transaction) => {
      left -= 1;
      return left < 0 ? Promise.reject(new Error("killed")) : store.commit(...transaction);
    },
  };
  const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  return createAuditedActs({ ...parts, store: limited, history: { insert }, outbox, clock });
}

const entryOf = (organizationId: string): NewAudit => ({
  organizationId,
  actor: "user:anna",
  source: "127.0.0.1",
  action: "topic.delete",
  objectKind: "managed-service",
  objectId: "s",
  result: "ok",
  requestId: "r",
  detail: "orders",
});

async function entriesOf(organizationId: string): Promise<string[]> {
  const page = { after: undefined, limit: 10, order: "oldest first" } as const;
  const { items } = await history.audit({ organizationId }, page);
  return items.map(({ action, result, detail }) => `${action} ${detail} ${result}`);
}

const pendingKeys = async () => (await store.list(pendingPrefix, { limit: 10 })).values.length;
const sweep = (ahead = 0) => open({ aheadMs: ahead }).sweep(new AbortController().signal);
const missing = () => new HoldfastError("TOPIC_NOT_FOUND", "There is no topic orders.");

test("an act has one entry, of its outcome, and none before it ends", async () => {
  const acts = open();
  const during = await acts.act(entryOf("done"), async () => {
    expect(await pendingKeys()).toBe(1);
    await sweep();
    return entriesOf("done");
  });
  expect(during).toEqual([]);
  await until(async () => (await entriesOf("done")).length > 0);
  expect(await entriesOf("done")).toEqual(["topic.delete orders ok"]);
  expect(await pendingKeys()).toBe(0);
});

test.each([
  ["an error of the catalog", missing(), "topic_not_found"],
  ["any other error", new Error("aborted"), "outcome_unknown"],
])("an act that fails with %s is refused and never ok", async (organizationId, error, code) => {
  const acts = open();
  expect(acts.hasEntry(error)).toBe(false);
  await expect(acts.act(entryOf(organizationId), () => Promise.reject(error))).rejects.toBe(error);
  expect(acts.hasEntry(error)).toBe(true);
  await until(async () => (await entriesOf(organizationId)).length > 0);
  expect(await entriesOf(organizationId)).toEqual([`topic.delete ${code} orders refused`]);
  expect(await pendingKeys()).toBe(0);
});

test("an act whose controller was killed has an entry after five minutes", async () => {
  const killed = open({ commits: 1 });
  expect(await killed.act(entryOf("killed"), () => Promise.resolve("deleted"))).toBe("deleted");
  const error = missing();
  await expect(open({ commits: 1 }).act(entryOf("killed"), () => Promise.reject(error))).rejects.toBe(error);
  expect(killed.hasEntry(error)).toBe(false);
  await sweep(4 * minuteMs);
  expect(await pendingKeys()).toBe(2);
  await sweep(6 * minuteMs);
  expect(await pendingKeys()).toBe(0);
  await until(async () => (await entriesOf("killed")).length === 2);
  expect(new Set(await entriesOf("killed"))).toEqual(new Set(["topic.delete outcome_unknown orders refused"]));
});

test("the outcome of an act that ends after the sweep is a second entry", async () => {
  await open().act(entryOf("late"), () => sweep(6 * minuteMs));
  await until(async () => (await entriesOf("late")).length === 2);
  expect(new Set(await entriesOf("late"))).toEqual(
    new Set(["topic.delete outcome_unknown orders refused", "topic.delete orders ok"]),
  );
});

test("an act is refused if its entry cannot be stored", async () => {
  let isDone = false;
  const act = async () => {
    isDone = true;
  };
  await expect(open({ commits: 0 }).act(entryOf("unstored"), act)).rejects.toThrow("killed");
  const full = { admit: () => expect.fail("20,000 entries wait") };
  const acts = createAuditedActs({ ...parts, store, history: { insert }, outbox: full });
  await expect(acts.act(entryOf("unstored"), act)).rejects.toThrow("entries wait");
  expect([isDone, await pendingKeys()]).toEqual([false, 0]);
});

test("a read has its entry before its caller has the value, and none if it fails", async () => {
  const acts = open();
  await expect(acts.read(entryOf("read"), () => Promise.reject(missing()))).rejects.toThrow("There is no topic");
  expect(await entriesOf("read")).toEqual([]);
  expect(await acts.read(entryOf("read"), () => "secret")).toBe("secret");
  expect(await entriesOf("read")).toEqual(["topic.delete orders ok"]);
});

test("without the history reads are refused, and acts have their entries afterwards", async () => {
  const acts = open();
  await stores.postgresql.kill();
  await expect(acts.read(entryOf("away"), () => "secret")).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
  expect(await acts.act(entryOf("away"), () => Promise.resolve("deleted"))).toBe("deleted");
  await stores.postgresql.start();
  await until(async () => (await entriesOf("away").catch(() => [])).length > 0);
  expect(await entriesOf("away")).toEqual(["topic.delete orders ok"]);
});
