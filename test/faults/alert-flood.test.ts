import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { startWebhookPlatform, type WebhookPlatform } from "@holdfast/testing/servers/webhook-platform.ts";
import { type Respond, startWebhookReceiver } from "@holdfast/testing/servers/webhook-receiver.ts";

/** Number of alerts. `npm run faults -- --alerts` sends 10,000, which takes a minute on two busy cores. */
const alerts = Number(process.env["HOLDFAST_TEST_ALERTS"] ?? 1_000);
/** Alerts in one transaction: each is an entry of the outbox. */
const together = 100;

let platform: WebhookPlatform;
beforeAll(async () => {
  platform = await startWebhookPlatform();
});
afterAll(() => platform?.close());

async function receiver(respond?: Respond) {
  const started = await startWebhookReceiver(respond);
  onTestFinished(() => started.close());
  const ids = () => new Set(started.received.map(({ body }) => String(JSON.parse(body).id)));
  return { ...started, ids };
}

async function count(sql: string, channelId: string): Promise<number> {
  const [row] = await platform.history.sql().query<{ count: string }>(sql, [channelId]);
  return Number(row?.count);
}

const waiting = (channelId: string) => count("select count(*) from webhook_delivery where webhook_id = $1", channelId);
const delivered = (channelId: string) =>
  count(
    "select count(distinct event_id) from webhook_attempt where webhook_id = $1 and error_message is null",
    channelId,
  );

test(`of ${alerts} concurrent alerts, those for a hanging channel delay no other, and none is lost`, async () => {
  let pending: ServerResponse[] | undefined = [];
  const hanging = await receiver((response) => void (pending === undefined ? response.end() : pending.push(response)));
  const [beside, elsewhere] = [await receiver(), await receiver()];
  const stuck = await platform.channel("crowded", hanging.url);
  const channelId = await platform.channel("crowded", beside.url);
  const otherChannelId = await platform.channel("quiet", elsewhere.url);
  // All of them exist before delivery starts. The hanging ones are the first of each transaction.
  const half = Array.from({ length: alerts / 2 }, (_, index) => String(index));
  for (let from = 0; from < half.length; from += together / 2) {
    const some = half.slice(from, from + together / 2);
    await platform.emitAll("crowded", "alert.fired", [
      ...some.map((id) => ({ id: `stuck ${id}`, notification_channel_id: stuck })),
      ...some.map((id) => ({ id: `well ${id}`, notification_channel_id: channelId })),
    ]);
  }
  // No attempt times out during this test: a hanging attempt occupies its slot until the end.
  const delivering = platform.deliver({ attemptMs: 600_000 });
  onTestFinished(() => delivering.stop());
  await platform.emit("quiet", "alert.fired", { id: "quiet", notification_channel_id: otherChannelId });

  const everyMs = 250;
  const progress = async () => `${beside.ids().size} of ${half.length}, ${await waiting(channelId)} wait`;
  await waitUntil(
    "the other channel has all of its notifications",
    async () => (await delivered(channelId)) === half.length,
    {
      describe: progress,
      everyMs,
    },
  );
  await waitUntil("so has another organization's", async () => (await delivered(otherChannelId)) === 1, {
    describe: progress,
    everyMs,
  });
  expect(beside.ids()).toEqual(new Set(half.map((id) => `well ${id}`)));
  expect(elsewhere.ids()).toEqual(new Set(["quiet"]));
  expect(hanging.received.length).toBeGreaterThan(0);
  expect(await delivered(stuck)).toBe(0);
  expect([await waiting(stuck), await waiting(channelId)]).toEqual([half.length, 0]);

  const unanswered = pending;
  pending = undefined;
  for (const response of unanswered) response.end();
  await waitUntil(
    "the channel that hung has all of its notifications",
    async () => (await delivered(stuck)) === half.length,
    {
      everyMs,
      describe: async () => `${hanging.ids().size} of ${half.length}`,
    },
  );
  expect(hanging.ids()).toEqual(new Set(half.map((id) => `stuck ${id}`)));
  expect(await waiting(stuck)).toBe(0);
});
