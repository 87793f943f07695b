import { get } from "node:https";
import { afterAll, beforeAll, expect, test } from "vitest";
import { basic } from "@holdfast/testing/api/rest.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

interface Key {
  readonly id: string;
  readonly secret: string;
}

let platform: Platform;

beforeAll(async () => {
  platform = await startPlatform({ environment: { HOLDFAST_FOLLOWERS: "20", HOLDFAST_RATE_BYTES: "100000" } });
  // The API serves before the history is up.
  await waitUntil("the history answers", async () => (await platform.rest.get("/events?limit=1")).status === 200);
});
afterAll(() => platform?.remove());

async function newKey(name: string, scopes = ["services:read"]): Promise<Key & { authorization: string }> {
  const { json } = await platform.rest.post<Key>("/api-keys", { name, scopes });
  return { ...json, authorization: basic(json.id, json.secret) };
}

/** A stream of events: its status, its text so far, and its end. */
function follow(authorization: string, path = "/events?follow=true") {
  const opened = Promise.withResolvers<number>();
  const ended = Promise.withResolvers<string>();
  let text = "";
  const { hostname: host, port } = new URL(platform.admin.base_url);
  const options = {
    host,
    port,
    ca: platform.ca,
    path,
    agent: false,
    headers: { authorization },
  };
  const outgoing = get(options, (response) => {
    opened.resolve(response.statusCode ?? 0);
    response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    response.on("end", () => ended.resolve(text));
    response.on("error", () => ended.resolve(text));
  });
  outgoing.on("error", () => opened.resolve(0));
  return { status: opened.promise, ended: ended.promise, leave: () => outgoing.destroy() };
}

test("the streams of a deleted key end", async () => {
  const { id, authorization } = await newKey("follower");
  const stream = follow(authorization);
  expect(await stream.status).toBe(200);
  expect((await platform.rest.delete(`/api-keys/${id}`)).status).toBe(204);
  expect(await stream.ended).toContain('"status":401');
});

async function newPerson(username: string, role: string) {
  const members = `/organizations/${(await platform.rest.get<{ organization_id: string }>("/me")).json.organization_id}/members`;
  const { json } = await platform.rest.post<{ setup_token: string }>("/users", { username });
  const password = "correct horse battery";
  expect((await platform.rest.as(undefined).post("/users/setup", { token: json.setup_token, password })).status).toBe(
    204,
  );
  expect((await platform.rest.post(members, { user_id: username, role })).status).toBe(201);
  return { authorization: basic(username, password), member: `${members}/${username}` };
}

test("an expired token, a removed member and a narrowed role end their streams", async () => {
  const services = createServices(platform);
  const { service } = await services.createRunning("followed");
  const path = `/managed-services/${service.id}`;
  const logs = `${path}/logs?follow=true`;
  const brief = await platform.rest.post<{ token: string }>("/tokens", { scopes: ["services:read"], ttl_seconds: 5 });
  const [removed, narrowed] = [await newPerson("removed", "viewer"), await newPerson("narrowed", "developer")];
  const { authorization } = await newKey("of a service", ["services:read", "services:data"]);
  const streams = {
    expired: follow(`Bearer ${brief.json.token}`, "/events?follow=true"),
    removed: follow(removed.authorization),
    narrowed: follow(narrowed.authorization, logs),
    deleted: follow(authorization, logs),
  };
  for (const stream of Object.values(streams)) expect(await stream.status).toBe(200);
  expect((await platform.rest.delete(removed.member)).status).toBe(204);
  expect((await platform.rest.patch(narrowed.member, { role: "viewer" })).status).toBe(200);
  const { expired, ...judged } = streams;
  expect(await expired.ended).toContain('"status":401');
  expect(await judged.removed.ended).toMatch(/"status":40[134]/);
  expect(await judged.narrowed.ended).toContain('"status":403');
  await services.delete(service.id);
  // The machine of the deleted service may be removed before the stream ends.
  expect(await judged.deleted.ended).toMatch(/event: error\ndata: .*"status":(404|503)/);
});

test("a key has at most twenty streams, and others change objects during that time", async () => {
  const { authorization } = await newKey("greedy");
  const streams = Array.from({ length: 120 }, () => follow(authorization));
  const statuses = await Promise.all(streams.map(({ status }) => status));
  expect(statuses.filter((status) => status === 200)).toHaveLength(20);
  expect(statuses.filter((status) => status === 429)).toHaveLength(100);
  expect((await newKey("meanwhile")).id).toMatch(/^hfk_/);
  for (const { leave } of streams) leave();
});

test("a loop of changes that cancel out is limited by its writes, and may still delete", async () => {
  const { authorization } = await newKey("loop", ["webhooks:read", "webhooks:write", "services:read"]);
  const rest = platform.rest.as(authorization);
  const created: string[] = [];
  for (let n = 0; n < 1_000; n += 1) {
    const response = await rest.post<{ id: string; detail: string }>("/webhooks", { url: "https://1.1.1.1/" });
    if (response.status === 429) {
      expect(response.json.detail).toContain("100000 bytes");
      expect(Number(response.headers["retry-after"])).toBeGreaterThan(0);
      break;
    }
    expect(response.status).toBe(201);
    created.push(response.json.id);
    const last = created.length > 1 ? created.shift() : undefined;
    if (last !== undefined) expect((await rest.delete(`/webhooks/${last}`)).status).toBe(204);
  }
  expect(created).toHaveLength(1);
  expect((await rest.delete(`/webhooks/${created[0]}`)).status).toBe(204);
  // Other callers of the organization have limits of their own.
  expect((await newKey("after the loop")).id).toMatch(/^hfk_/);
});

test("a revision of the future is rejected immediately", async () => {
  const { status, json } = await platform.rest.get<{ errors: { field: string }[] }>("/managed-services", {
    headers: { "holdfast-revision": "999999999999999999" },
  });
  expect([status, json.errors[0]?.field]).toEqual([400, "Holdfast-Revision"]);
});

test("the longest list that a body takes is one fault", async () => {
  const networks = Array.from({ length: 12_000 }, (_, n) => `10.${n >> 8}.${n & 255}.0/24`);
  const { status, json } = await platform.rest.post<{ errors: unknown[] }>("/managed-services", {
    name: "long",
    database_type: "postgresql",
    plan_name: "tier-1",
    storage_size_gb: 1,
    allowed_cidrs: networks,
  });
  expect([status, json.errors.length]).toEqual([400, 1]);
});
