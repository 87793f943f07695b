import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { createHistory, type History } from "#kernel/history/history.ts";
import type { EventEntry } from "#kernel/store/outbox-entry.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import type { ChannelObject } from "../channel/channel.ts";
import { sendDigests } from "./mail-digest.ts";
import { createMailDigestQueue, type MailDigestQueue } from "./mail-digest-queue.ts";
import { createMailRateLimit, createMailSender } from "./mail-sender.ts";
import { type Mail, MailFailure } from "./mailer.ts";

let postgresql: TestPostgresql;
let history: History;
let digests: MailDigestQueue;
const now = Date.parse("2026-03-15T12:00:00.123Z");

beforeAll(async () => {
  postgresql = await startTestPostgresql();
  history = createHistory({ url: postgresql.url, log: silentLog, now: () => now });
  await history.ready;
  digests = createMailDigestQueue(history.sql);
});
afterAll(async () => {
  await history?.close();
  await postgresql?.stop();
});

function alert(index: number): EventEntry {
  const data = {
    service_name: "orders",
    alert_name: `rule ${index}`,
    severity: "warning",
    state: "firing",
    current_value: 3,
  };
  const id = uuidv7();
  return {
    entry: "event",
    id,
    occurredAt: now + index,
    type: "alert.fired",
    organizationId: "o",
    objectKind: "x",
    objectId: "y",
    data,
  };
}

/** A server that accepts mail, or refuses it while `isAway`. */
function scenario(channelId: string) {
  const taken: Mail[] = [];
  const state = { isAway: false, monotonicMs: 0, isConfirmed: true };
  const rateLimit = createMailRateLimit({ monotonicMs: () => state.monotonicMs });
  const mailer = {
    async send(mail: Mail) {
      if (state.isAway) throw new MailFailure("away");
      taken.push(mail);
    },
  };
  const channel = (): ChannelObject => ({
    metadata: newMetadata(channelId, now, { organizationId: "o" }),
    spec: { type: "email", address: "team@example.com" },
    status: { confirmedAt: state.isConfirmed ? now : null, confirmation: null },
  });
  const channels = {
    ready: Promise.resolve(),
    get: (id: string) => (id === channelId ? { object: channel(), modRevision: 1n } : undefined),
  };
  const all = { mailer, rateLimit, digests, channels, baseUrl: "https://platform.example" };
  const sender = createMailSender({ ...all, confirmations: { begin: async () => undefined } });
  const signal = new AbortController().signal;
  const deliver = (event: EventEntry) =>
    sender.send({ channelId, address: "team@example.com", isConfirmed: state.isConfirmed }, event, signal);
  return { taken, state, deliver, digest: () => sendDigests(all, signal) };
}

test("20 alerts a minute are sent one by one, and the others in one mail after the minute", async () => {
  const { taken, state, deliver, digest } = scenario("flooded");
  const events = Array.from({ length: 250 }, (_, index) => alert(index));
  await history.insert(events);
  for (const event of events) expect(await deliver(event)).toBeNull();
  // A crash between the digest's row and the delivery's record adds the event again.
  expect(await deliver(events[249] ?? alert(0))).toBeNull();
  expect(taken).toHaveLength(20);
  await digest();
  expect(taken).toHaveLength(20);

  state.monotonicMs = 61_000;
  state.isAway = true;
  await digest();
  state.isAway = false;
  await digest();
  await digest();
  expect(taken).toHaveLength(21);
  expect(taken[20]).toMatchObject({ to: "team@example.com", subject: "[Holdfast] 230 alerts" });
  expect(taken[20]?.text).toContain("orders: rule 20 (warning) is firing at 3");
  expect(taken[20]?.text).toContain("130 more are not listed");
  expect(await digests.channels()).toEqual([]);
});

test("queued alerts of an address that is not confirmed any more are dropped", async () => {
  const { taken, state, deliver, digest } = scenario("moved");
  const events = Array.from({ length: 21 }, (_, index) => alert(index));
  await history.insert(events);
  for (const event of events) await deliver(event);
  expect(await digests.channels()).toEqual(["moved"]);
  state.isConfirmed = false;
  state.monotonicMs = 61_000;
  await digest();
  expect(taken).toHaveLength(20);
  expect(await digests.channels()).toEqual([]);
  expect(await deliver(alert(0))).toBe("The address is not confirmed.");
});
