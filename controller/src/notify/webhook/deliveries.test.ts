import { create } from "@bufbuild/protobuf";
import { systemClock } from "@holdfast/common/clock.ts";
import {
  CreateWebhookRequestSchema,
  DeleteWebhookRequestSchema,
  ListDeliveriesRequestSchema,
  RedeliverRequestSchema,
  RetryPolicy,
  RotateSecretRequestSchema,
  TestWebhookRequestSchema,
} from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { until } from "@holdfast/testing/wait-until.ts";
import { acceptedBy } from "@holdfast/testing/servers/webhook-verifiers.ts";
import {
  type Delivering,
  startWebhookPlatform,
  type WebhookPlatform,
} from "@holdfast/testing/servers/webhook-platform.ts";
import { type Received, type Respond, startWebhookReceiver } from "@holdfast/testing/servers/webhook-receiver.ts";
import { disableAfterMs } from "./webhook-receivers.ts";

let platform: WebhookPlatform;
beforeAll(async () => {
  platform = await startWebhookPlatform();
});
afterAll(() => platform?.close());

let organizations = 0;
const newOrganization = () => `organization-${(organizations += 1)}`;

function deliver(options?: Parameters<WebhookPlatform["deliver"]>[0]): Delivering {
  const delivering = platform.deliver(options);
  onTestFinished(() => delivering.stop());
  return delivering;
}

async function receiver(respond?: Respond) {
  const started = await startWebhookReceiver(respond);
  onTestFinished(() => started.close());
  return started;
}

async function endpoint(
  organizationId: string,
  url: string,
  events?: string[],
  retryPolicy: RetryPolicy = RetryPolicy.STANDARD,
) {
  const request = create(CreateWebhookRequestSchema, {
    url,
    retryPolicy,
    ...(events && { events: { values: events } }),
  });
  const { id = "", secret = "" } = await platform.api.createWebhook(request, platform.call(organizationId));
  return { id, secret, organizationId };
}

async function attempts({ id, organizationId }: { id: string; organizationId: string }) {
  const request = create(ListDeliveriesRequestSchema, { id });
  return (await platform.api.listDeliveries(request, platform.call(organizationId))).deliveries ?? [];
}

/** Requests a redelivery of the endpoint's newest attempt. */
async function redeliver(webhook: { id: string; organizationId: string }) {
  const [{ id: deliveryId = "" } = {}] = await attempts(webhook);
  const request = create(RedeliverRequestSchema, { id: webhook.id, deliveryId });
  await platform.api.redeliver(request, platform.call(webhook.organizationId));
}

/** A clock that only tests advance, so that no attempt is due by chance on a busy machine. */
function standingClock() {
  let now = Date.now();
  const pass = (ms: number) => void (now += ms);
  return { clock: { ...systemClock, now: () => now }, pass };
}

const typesOf = (received: readonly Received[]) => received.map(({ body }) => JSON.parse(body).event_type);

test("independent verifiers accept a delivery", async () => {
  deliver();
  const server = await receiver();
  const { id, secret } = await endpoint(newOrganization(), `${server.url}/hooks`);
  const { organizationId = "" } = platform.webhooks.get(id)?.object.metadata ?? {};
  await platform.emit(organizationId, "service.running", { service_name: "äöü €", status: "Running" });
  await until(() => server.received.length === 1);
  const [{ body, headers, path } = { body: "", headers: {}, path: "" }] = server.received;
  expect(path).toBe("/hooks");
  expect(secret).toMatch(/^[0-9a-f]{64}$/);
  expect(await acceptedBy(server.received[0], secret)).toEqual([
    "octokit, X-Platform-Signature",
    "standardwebhooks",
    "svix",
  ]);
  expect(await acceptedBy(server.received[0], "0".repeat(64))).toEqual([]);
  expect(headers["content-type"]).toBe("application/json");
  expect(JSON.parse(body)).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    event_type: "service.running",
    timestamp: expect.stringMatching(/Z$/),
    data: { service_name: "äöü €", status: "Running" },
  });
});

test("an endpoint gets its organization's events by its filter, and tests despite its filter", async () => {
  deliver();
  const organizationId = newOrganization();
  const server = await receiver();
  const { id } = await endpoint(organizationId, server.url, ["service.error"]);
  await platform.emit(newOrganization(), "service.error");
  await platform.emit(organizationId, "service.running");
  await platform.emit(organizationId, "service.error");
  await platform.api.testWebhook(create(TestWebhookRequestSchema, { id }), platform.call(organizationId));
  await until(() => server.received.length === 2);
  await platform.emit(organizationId, "service.error");
  await until(() => server.received.length > 2);
  expect(typesOf(server.received).toSorted()).toEqual(["service.error", "service.error", "webhook.test"]);
});

test("three attempts: immediately, 1 s after the first failure, 2 s after the second; all recorded", async () => {
  deliver();
  const organizationId = newOrganization();
  const server = await receiver((response) => void response.writeHead(500).end("a secret word"));
  const webhook = await endpoint(organizationId, server.url);
  await platform.emit(organizationId, "service.error");
  await until(async () => (await attempts(webhook)).length === 3);
  const times = server.received.map(({ at }) => at);
  expect(times).toHaveLength(3);
  const [first = 0, second = 0, third = 0] = times;
  expect(second - first).toBeGreaterThanOrEqual(990);
  expect(second - first).toBeLessThan(10_000);
  expect(third - second).toBeGreaterThanOrEqual(1_990);
  expect(third - second).toBeLessThan(10_000);
  expect(new Set(server.received.map(({ body }) => body)).size).toBe(1);
  const recorded = await attempts(webhook);
  expect(recorded.map(({ attempt, responseStatus }) => [attempt, responseStatus])).toEqual([
    [3, 500],
    [2, 500],
    [1, 500],
  ]);
  expect(recorded[0]).toMatchObject({ errorMessage: "The endpoint responded with 500.", eventType: "service.error" });
  expect(recorded[0]?.deliveredAt).toBeUndefined();
  // The owner gets no text of an endpoint, because the owner may not own the server.
  expect(JSON.stringify(recorded, (_, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain(
    "secret",
  );
});

test.each([
  [204, true],
  [299, true],
  [301, false],
  [307, false],
  [410, false],
  [429, false],
])("a response with status %i is a success: %s", async (status, success) => {
  deliver({ clock: standingClock().clock });
  const organizationId = newOrganization();
  const server = await receiver((response) => void response.writeHead(status, { location: "/elsewhere" }).end());
  const webhook = await endpoint(organizationId, server.url);
  await platform.emit(organizationId, "service.running");
  await until(async () => (await attempts(webhook)).length === 1);
  const [attempt] = await attempts(webhook);
  expect(attempt?.responseStatus).toBe(status);
  expect(attempt?.errorMessage === undefined).toBe(success);
  expect(attempt?.deliveredAt !== undefined).toBe(success);
  expect(server.received.map(({ path }) => path)).toEqual(["/"]);
});

test("deleting an endpoint stops further attempts", async () => {
  const { clock, pass } = standingClock();
  deliver({ clock });
  const organizationId = newOrganization();
  const fail: Respond = (response) => void response.writeHead(503).end();
  const [server, other] = [await receiver(fail), await receiver(fail)];
  const webhook = await endpoint(organizationId, server.url);
  const remaining = await endpoint(organizationId, other.url);
  await platform.emit(organizationId, "service.error");
  for (const each of [webhook, remaining]) await until(async () => (await attempts(each)).length === 1);
  await platform.api.deleteWebhook(
    create(DeleteWebhookRequestSchema, { id: webhook.id }),
    platform.call(organizationId),
  );
  // The remaining endpoint is retried at the same time, and once more after that.
  for (const count of [2, 3]) {
    pass(10_000);
    await until(() => other.received.length === count);
    await until(async () => (await attempts(remaining)).length === count);
  }
  expect(server.received).toHaveLength(1);
});

test("undelivered events are delivered after a crash, with the same event id", async () => {
  const organizationId = newOrganization();
  let open = false;
  const server = await receiver((response) => {
    if (open) response.end();
  });
  const webhook = await endpoint(organizationId, server.url);
  // Nothing moves the outbox or delivers: the state changed, and then the platform crashed.
  for (let n = 0; n < 20; n += 1) await platform.emit(organizationId, "service.running");
  const first = platform.deliver();
  await until(() => server.received.length > 0);
  await first.stop();
  open = true;
  deliver();
  await until(async () => (await attempts(webhook)).length === 20);
  const ids = (await attempts(webhook)).map(({ eventId }) => eventId);
  expect(new Set(ids).size).toBe(20);
  const all = { after: undefined, limit: 200, order: "oldest first" } as const;
  const { items } = await platform.history.events({ organizationId }, all);
  expect(new Set(ids)).toEqual(new Set(items.map(({ id }) => id)));
});

test("hanging endpoints delay no others, neither in their organization nor outside", async () => {
  // No attempt times out during this test, so hanging ones stay in flight.
  deliver({
    limits: { total: 400, organization: 40, endpoint: 4, starting: 4, perRound: 4, unhealthyShare: 1 / 4 },
    attemptMs: 600_000,
  });
  const hanging = await receiver(() => undefined);
  const [sick, well] = [newOrganization(), newOrganization()];
  for (let n = 0; n < 12; n += 1) await endpoint(sick, `${hanging.url}/${n}`);
  const [beside, elsewhere] = [await receiver(), await receiver()];
  await endpoint(sick, beside.url);
  await endpoint(well, elsewhere.url);
  for (let n = 0; n < 20; n += 1) await platform.emit(sick, "service.running");
  for (let n = 0; n < 20; n += 1) await platform.emit(well, "service.running");
  for (const { received } of [beside, elsewhere]) {
    await until(() => received.length >= 20);
    expect(received).toHaveLength(20);
  }
  // Each hanging endpoint has attempts in flight too.
  await until(() => new Set(hanging.received.map(({ path }) => path)).size === 12);
  expect(hanging.received.length).toBeLessThan(40);
});

test("a delivery that a round starts before its insert resolves is sent once", async () => {
  const server = await receiver();
  const isDelivered = () => typesOf(server.received).includes("service.running");
  let betweenCommitAndResult: () => Promise<void> = async () => undefined;
  deliver({ afterInsert: () => betweenCommitAndResult() });
  const webhook = await endpoint(newOrganization(), server.url);
  await platform.emit(webhook.organizationId, "service.error");
  await until(async () => (await attempts(webhook)).length === 1);
  betweenCommitAndResult = async () => {
    // The redelivery starts a round, which also reads the event of this insert.
    await redeliver(webhook);
    await until(isDelivered);
  };
  await platform.emit(webhook.organizationId, "service.running");
  await until(isDelivered);
  betweenCommitAndResult = async () => undefined;
  await platform.emit(webhook.organizationId, "service.stopped");
  await until(() => typesOf(server.received).includes("service.stopped"));
  expect(typesOf(server.received).filter((type) => type === "service.running")).toHaveLength(1);
});

test("an event whose insert fails after its commit is delivered", async () => {
  const organizationId = newOrganization();
  const server = await receiver();
  let inserts = 0;
  deliver({
    afterInsert: async () => {
      if ((inserts += 1) === 1) throw new Error("the connection was lost");
    },
  });
  await endpoint(organizationId, server.url);
  await platform.emit(organizationId, "service.running");
  await until(() => server.received.length === 1);
});

test("a recovered endpoint gets all waiting deliveries, one at a time at first", async () => {
  deliver({
    limits: { total: 64, organization: 64, endpoint: 8, starting: 4, perRound: 4, unhealthyShare: 1 / 4 },
    attemptMs: 1_000,
  });
  const organizationId = newOrganization();
  let open = false;
  const server = await receiver((response) => (open ? void response.end() : undefined));
  const webhook = await endpoint(organizationId, server.url);
  for (let n = 0; n < 12; n += 1) await platform.emit(organizationId, "service.running");
  await until(async () => (await attempts(webhook)).length >= 4);
  await until(() => server.received.length > 4);
  // A fifth attempt started after the first four timed out, and no sixth beside it.
  const came = server.received.length;
  expect(came - (await attempts(webhook)).length).toBeLessThanOrEqual(1);
  open = true;
  await until(
    async () => (await attempts(webhook)).filter(({ deliveredAt }) => deliveredAt !== undefined).length === 12,
  );
  expect(new Set(server.received.map(({ body }) => JSON.parse(body).id)).size).toBe(12);
});

test("during a rotation the old secret signs its header, and both sign the standard one", async () => {
  deliver();
  const organizationId = newOrganization();
  const server = await receiver();
  const { id, secret: old } = await endpoint(organizationId, server.url);
  const rotate = (overlapHours: number) =>
    platform.api.rotateSecret(create(RotateSecretRequestSchema, { id, overlapHours }), platform.call(organizationId));
  const { secret: next = "" } = await rotate(24);
  await platform.emit(organizationId, "service.running");
  await until(() => server.received.length === 1);
  const [first] = server.received;
  expect(await acceptedBy(first, old)).toEqual(["octokit, X-Platform-Signature", "standardwebhooks", "svix"]);
  expect(await acceptedBy(first, next)).toEqual(["octokit, X-Platform-Signature-Next", "standardwebhooks", "svix"]);
  const { secret: last = "" } = await rotate(0);
  await platform.emit(organizationId, "service.running");
  await until(() => server.received.length === 2);
  const [, second] = server.received;
  expect(await acceptedBy(second, last)).toEqual(["octokit, X-Platform-Signature", "standardwebhooks", "svix"]);
  expect(await acceptedBy(second, next)).toEqual([]);
});

test("a redelivery sends the same event again", async () => {
  deliver();
  const organizationId = newOrganization();
  const server = await receiver();
  const webhook = await endpoint(organizationId, server.url);
  await platform.emit(organizationId, "service.running");
  await until(async () => (await attempts(webhook)).length === 1);
  await redeliver(webhook);
  await until(() => server.received.length === 2);
  expect(server.received[1]?.body).toBe(server.received[0]?.body);
  const unknown = create(RedeliverRequestSchema, { id: webhook.id, deliveryId: webhook.id });
  await expect(platform.api.redeliver(unknown, platform.call(organizationId))).rejects.toMatchObject({
    key: "DELIVERY_NOT_FOUND",
  });
});

test("a redelivery whose result is lost after its commit is delivered", async () => {
  let takes = 0;
  deliver({
    afterRepeats() {
      if ((takes += 1) === 1) throw new Error("the connection was lost");
    },
  });
  const server = await receiver();
  const webhook = await endpoint(newOrganization(), server.url);
  await platform.emit(webhook.organizationId, "service.running");
  await until(async () => (await attempts(webhook)).length === 1);
  await redeliver(webhook);
  await until(() => server.received.length === 2);
  expect(takes).toBe(1);
});

test("an endpoint that fails for 5 days is disabled, with an event to its organization", async () => {
  const organizationId = newOrganization();
  const { clock, pass } = standingClock();
  deliver({ clock });
  const dead = await receiver((response) => void response.writeHead(500).end());
  const other = await receiver();
  const webhook = await endpoint(organizationId, dead.url, ["service.error"]);
  await endpoint(organizationId, other.url, ["webhook.disabled"]);
  await platform.emit(organizationId, "service.error");
  await until(async () => (await attempts(webhook)).length === 1);
  pass(disableAfterMs);
  await platform.emit(organizationId, "service.error");
  await until(() => other.received.length === 1);
  expect(platform.webhooks.get(webhook.id)?.object).toMatchObject({
    spec: { active: false },
    status: { disabledAt: expect.any(Number) },
  });
  expect(JSON.parse(other.received[0]?.body ?? "{}").data).toMatchObject({
    webhook_id: webhook.id,
    url: `${dead.url}/`,
    reason: "failing",
  });
});

test.each([
  { policy: RetryPolicy.EXTENDED, status: 503, header: "3600", waitMs: 3_600_000 },
  { policy: RetryPolicy.EXTENDED, status: 429, header: "Sat, 01 Jan 2000 00:00:00 GMT", waitMs: 1_000 },
  { policy: RetryPolicy.EXTENDED, status: 503, header: "999999999", waitMs: 86_400_000 },
  { policy: RetryPolicy.EXTENDED, status: 503, header: "soon", waitMs: 1_000 },
  { policy: RetryPolicy.STANDARD, status: 503, header: "3600", waitMs: 1_000 },
])("the next attempt after $status with Retry-After $header by policy $policy is due after $waitMs ms", async (row) => {
  const organizationId = newOrganization();
  const { clock } = standingClock();
  deliver({ clock });
  const busy = await receiver((response) => void response.writeHead(row.status, { "retry-after": row.header }).end());
  const webhook = await endpoint(organizationId, busy.url, undefined, row.policy);
  const now = clock.now();
  await platform.emit(organizationId, "service.running");
  await until(async () => (await attempts(webhook)).length === 1);
  const due = `select extract(epoch from due_at) * 1000 as due_at from webhook_delivery where webhook_id = $1`;
  const rows = await platform.history.sql().query<{ due_at: string }>(due, [webhook.id]);
  expect(rows.map((delivery) => Math.round(Number(delivery.due_at)) - now)).toEqual([row.waitMs]);
});

test("an endpoint that responds with 410 is disabled immediately, with an event to its organization", async () => {
  const organizationId = newOrganization();
  deliver();
  const deleted = await receiver((response) => void response.writeHead(410).end());
  const other = await receiver();
  const webhook = await endpoint(organizationId, deleted.url, ["service.error"]);
  await endpoint(organizationId, other.url, ["webhook.disabled"]);
  await platform.emit(organizationId, "service.error");
  await until(() => other.received.length === 1);
  expect(platform.webhooks.get(webhook.id)?.object).toMatchObject({
    spec: { active: false },
    status: { disabledAt: expect.any(Number) },
  });
  expect(JSON.parse(other.received[0]?.body ?? "{}").data).toEqual({
    webhook_id: webhook.id,
    url: `${deleted.url}/`,
    reason: "gone",
    failing_since: expect.any(String),
  });
  expect(deleted.received).toHaveLength(1);
});
