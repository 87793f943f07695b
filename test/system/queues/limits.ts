import { once } from "node:events";
import { request } from "node:https";
import { expect, it } from "vitest";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { QueuesUnderTest } from "./queues-under-test.ts";

const largeBody = 2 << 20;
const largePayload = (n: number) => ({ n, t: "x".repeat(200_000) });
const limits = { bodies: 8, tasks: 32, waiters: 64 };

/** Resolves once this many of the requests are rejected: until then some of them may still be in transit. */
async function refusals(requests: readonly Promise<{ readonly status: number }>[], count: number): Promise<void> {
  let refused = 0;
  for (const each of requests) each.then(({ status }) => (refused += status === 429 ? 1 : 0)).catch(() => undefined);
  await waitUntil(`${count} are refused`, () => refused >= count, { withinMs: 15_000 });
}

/** Concurrency limits of each kind. */
export function limitCases(fixture: QueuesUnderTest): void {
  /** A request whose body begins and does not end; returns its status once it is rejected or finished. */
  function openBody(path: string) {
    const { hostname: host, port } = new URL(fixture.platform.admin.base_url);
    const headers = {
      authorization: fixture.platform.owner,
      "content-type": "application/json",
      "content-length": String(largeBody),
    };
    const status = Promise.withResolvers<number>();
    const url = new URL(fixture.platform.admin.base_url + path).pathname;
    const options = { host, port, path: url, method: "POST", ca: fixture.platform.ca, agent: false, headers };
    const outgoing = request(options, (response) => {
      response.resume();
      status.resolve(response.statusCode ?? 0);
    });
    // A rejection may close the connection during the upload.
    outgoing.on("error", () => status.resolve(0));
    outgoing.write(Buffer.alloc((1 << 20) + 1, " "));
    return { status: status.promise, end: () => outgoing.destroy() };
  }

  it("accept eight bodies over 1 MiB at a time, and other requests concurrently", async () => {
    await fixture.create("bodies");
    const path = fixture.path("/bodies/messages");
    const openBodies = Array.from({ length: limits.bodies + 1 }, () => openBody(path));
    try {
      expect(await Promise.race(openBodies.map(({ status }) => status))).toBe(429);
      expect((await fixture.platform.rest.get(fixture.path())).status).toBe(200);
      await fixture.enqueue("bodies", [{ small: true }]);
    } finally {
      for (const { end } of openBodies) end();
    }
    const large = Array.from({ length: 6 }, (_, n) => largePayload(n));
    await waitUntil("there are places again", async () => (await fixture.post("bodies", large)).status === 202);
  });

  it("finish a large request with a key after a disconnect, and return its result to the next", async () => {
    await fixture.create("left");
    const locker = await fixture.connect();
    await locker.query("BEGIN");
    await locker.query("LOCK TABLE mdb_queue.messages IN SHARE MODE");
    const { hostname: host, port } = new URL(fixture.platform.admin.base_url);
    const body = JSON.stringify({ messages: Array.from({ length: 12 }, (_, n) => ({ payload: largePayload(n) })) });
    const headers = { "content-type": "application/json", "idempotency-key": "left-1" };
    const path = fixture.path("/left/messages");
    const outgoing = request({
      host,
      port,
      path: new URL(fixture.platform.admin.base_url + path).pathname,
      method: "POST",
      ca: fixture.platform.ca,
      agent: false,
      headers: { ...headers, authorization: fixture.platform.owner },
    });
    const disconnected = once(outgoing, "error");
    outgoing.end(body);
    const waiting = "SELECT FROM pg_locks WHERE relation = 'mdb_queue.messages'::regclass AND NOT granted";
    await waitUntil("its rows wait for the lock", async () => (await locker.query(waiting)).rowCount === 1, {
      everyMs: 20,
    });
    outgoing.destroy(new Error("the caller leaves"));
    await disconnected;
    await locker.query("ROLLBACK");
    await locker.end();
    await waitUntil("its messages are there", async () => (await fixture.leftIn("left")) === 12);
    const { task_id: taskId } = expectStatus(
      await fixture.platform.rest.call<{ task_id: string }>("POST", path, { rawBody: body, headers }),
      202,
    ).json;
    expect((await fixture.resultOf(`/tasks/${taskId}`)).message_ids).toHaveLength(12);
    expect(await fixture.leftIn("left")).toBe(12);
  });

  it("have 64 waiting claims at a time, and hand each message to one of them", async () => {
    await fixture.create("parked");
    const waiting = Array.from({ length: limits.waiters + 8 }, () =>
      fixture.platform.rest.post<{ messages: { payload: { n: number } }[] }>(fixture.path("/parked/messages/claim"), {
        wait_seconds: 20,
      }),
    );
    await refusals(waiting, 8);
    const refused = await Promise.race(waiting);
    expect([refused.status, refused.json]).toMatchObject([429, { code: "rate_limited" }]);
    // Waiting claims do not delay others.
    await fixture.enqueue(
      "parked",
      Array.from({ length: limits.waiters }, (_, n) => ({ n })),
    );
    const responses = await Promise.all(waiting);
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(8);
    const found = responses.flatMap(({ status, json }) => (status === 200 ? json.messages : []));
    expect(found.map(({ payload }) => payload.n).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: limits.waiters }, (_, n) => n),
    );
  });

  it("process 32 requests of a service at a time, while everything else continues", async () => {
    await fixture.create("locked");
    const locker = await fixture.connect();
    await locker.query("BEGIN");
    await locker.query("LOCK TABLE mdb_queue.messages IN ACCESS EXCLUSIVE MODE");
    const path = fixture.path("/locked/messages/claim");
    const claims = Array.from({ length: limits.tasks + 8 }, () => fixture.platform.rest.post(path, {}));
    await refusals(claims, 8);
    const refused = await Promise.race(claims);
    expect([refused.status, refused.json]).toMatchObject([429, { code: "rate_limited" }]);
    const databases = await fixture.platform.rest.get(`/managed-services/${fixture.orders.service.id}/databases`);
    expect(databases.status).toBe(200);
    await locker.query("ROLLBACK");
    await locker.end();
    const statuses = (await Promise.all(claims)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 429)).toHaveLength(8);
    // A request that waited for the lock too long got an error.
    expect(statuses.filter((status) => ![200, 429, 503].includes(status))).toEqual([]);
    await fixture.enqueue("locked", [{ n: 1 }]);
    await waitUntil("it is claimed", async () => (await fixture.claim("locked", {})).length === 1);
  });
}
