import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { type Collection, createCollection } from "#kernel/store/collection.ts";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { createUnitOfWork } from "#kernel/store/unit-of-work.ts";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { channelKind, type ChannelObject } from "./channel.ts";
import { type ConfirmationLink, createChannelConfirmations } from "./channel-confirmation.ts";

const hourMs = 3_600_000;
const sealer = createSealer({ current: "v1", keys: new Map([["v1", Buffer.alloc(32, 1)]]) });
const who = { source: "127.0.0.1", requestId: "r" };
let etcd: TestEtcd;
let store: Store;
let channels: Collection<ChannelObject>;
let now = Date.now();
const clock = { now: () => now, monotonicMs: () => now };
const begin = () => createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock, ids: uuidv7 });

beforeAll(async () => {
  etcd = await startTestEtcd();
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  channels = createCollection(store, channelKind);
  await channels.ready;
});
afterAll(async () => {
  channels?.close();
  await store?.close();
  await etcd?.stop();
});

/** A channel with an unconfirmed address, and its confirmations. */
async function unconfirmed() {
  const id = uuidv7();
  const unit = begin();
  unit.create(channelKind, {
    metadata: newMetadata(id, now, { name: "team", organizationId: "o" }),
    spec: { type: "email", address: "team@example.com" },
    status: { confirmedAt: null, confirmation: null },
  });
  await channels.untilRevision(await unit.commit(), 60_000);
  const confirmations = createChannelConfirmations({ channels, begin, sealer, clock, baseUrl: "https://here" });
  const link = async (): Promise<ConfirmationLink> => {
    const url = new URL((await confirmations.begin(id, AbortSignal.timeout(60_000))) ?? "");
    expect(url.searchParams.get("channel")).toBe(id);
    return { channelId: id, token: url.searchParams.get("token") ?? "" };
  };
  return { id, confirmations, link, confirmedAt: () => channels.get(id)?.object.status.confirmedAt };
}

test("a link is valid for 72 hours", async () => {
  const { confirmations, link, confirmedAt } = await unconfirmed();
  const first = await link();
  now += 72 * hourMs - 1;
  expect(confirmations.isValid(first)).toBe(true);
  now += 1;
  expect(confirmations.isValid(first)).toBe(false);
  expect(await confirmations.accept(first, who)).toBe(false);
  expect(confirmedAt()).toBeNull();
});

test("only the newest link is valid, once, for its own channel; the store has no token", async () => {
  const { id, confirmations, link, confirmedAt } = await unconfirmed();
  const other = await unconfirmed();
  const [old, newest] = [await link(), await link()];
  expect(await confirmations.accept(old, who)).toBe(false);
  expect(await confirmations.accept({ ...newest, channelId: other.id }, who)).toBe(false);
  expect(JSON.stringify(channels.get(id)?.object)).not.toContain(newest.token);
  expect(await confirmations.accept(newest, who)).toBe(true);
  expect(confirmedAt()).toBe(now);
  expect(await confirmations.accept(newest, who)).toBe(false);
  expect(await confirmations.begin(id, AbortSignal.timeout(60_000))).toBeUndefined();
});
