import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { silentLog } from "@holdfast/common/log.ts";
import { createIdempotentCalls, idempotencyOf } from "./idempotency.ts";
import { emptyObject } from "./json/json-node.ts";
import type { StoredResponses } from "./idempotency.ts";
import { reader, startTestGateway, type TestGateway } from "@holdfast/testing/api/test-gateway.ts";

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.close());
beforeEach(() => {
  gateway.state.services.clear();
  gateway.state.creations = 0;
  gateway.state.beforeCreate = async () => undefined;
});

const good = { name: "orders", database_type: "postgresql", plan_name: "dev", storage_size_gb: 1 };
const create = (key: string, body: object = good) =>
  gateway.call("POST", "/managed-services", { body, headers: { "idempotency-key": key } });

test("a repeated request gets the stored response", async () => {
  const first = await create("same");
  const second = await create("same");
  expect([first.status, first.headers["idempotency-replayed"]]).toEqual([202, undefined]);
  expect([second.status, second.headers["idempotency-replayed"], second.headers.location]).toEqual([
    202,
    "true",
    first.headers.location,
  ]);
  expect(second.text).toBe(first.text);
  expect(gateway.state.creations).toBe(1);
});

test("concurrent requests are carried out once and get one response", async () => {
  const released = Promise.withResolvers<void>();
  gateway.state.beforeCreate = () => released.promise;
  const { authentications } = gateway;
  const requests = [create("twice"), create("twice"), create("twice")];
  // The first one is carried out until the others have arrived.
  await expect.poll(() => gateway.authentications).toBe(authentications + requests.length);
  released.resolve();
  const answers = await Promise.all(requests);
  expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
  expect(gateway.state.creations).toBe(1);
});

test("bodies are compared by their canonical text", async () => {
  const first = await create("order");
  const { name, ...rest } = good;
  expect((await create("order", { ...rest, name })).text).toBe(first.text);
  expect((await create("order", { ...good, name: "other" })).json).toMatchObject({
    status: 422,
    code: "idempotency_key_reused",
  });
});

test("a different query is a different request", async () => {
  const send = (query: string) =>
    gateway.call("POST", `/managed-services${query}`, { body: good, headers: { "idempotency-key": "query" } });
  const first = await send("");
  for (const query of ["?emergency=true", "?name=a&name=b"])
    expect((await send(query)).json).toMatchObject({ status: 422, code: "idempotency_key_reused" });
  for (const query of ["", "?", "?&"]) expect((await send(query)).text).toBe(first.text);
  expect(gateway.state.creations).toBe(1);
});

test("the order of query parameters does not matter", () => {
  const hashed = (query: string) =>
    idempotencyOf({
      key: "k",
      principal: undefined,
      verb: "POST",
      path: "/",
      query,
      body: { value: emptyObject },
      encode: () => ({ status: 200, headers: {}, body: "", secret: false }),
    }).bodyHash;
  expect(hashed("a=1&b=2")).toBe(hashed("b=2&a=1"));
  expect(hashed("a=1&b=2")).not.toBe(hashed("a=1%26b=2"));
  expect(hashed("a=1")).not.toBe(hashed("a=2"));
});

test("a refusal of the handler is replayed", async () => {
  await create("first");
  const taken = await create("second");
  expect(taken.status).toBe(409);
  gateway.state.services.clear();
  const again = await create("second");
  expect([again.status, again.text, again.headers["idempotency-replayed"]]).toEqual([409, taken.text, "true"]);
  expect(again.headers["content-type"]).toBe("application/problem+json");
});

test("internal errors and refusals about credentials are not stored", async () => {
  const restart = () => gateway.call("POST", "/managed-services/x/restart", { headers: { "idempotency-key": "k" } });
  expect((await restart()).status).toBe(500);
  expect((await restart()).headers["idempotency-replayed"]).toBeUndefined();
  const refused = await gateway.call("POST", "/managed-services", {
    body: good,
    authorization: reader,
    headers: { "idempotency-key": "k2" },
  });
  expect(refused.status).toBe(403);
  expect((await create("k2")).status).toBe(202);
});

test("a POST that only reads is carried out again", async () => {
  const reveal = () =>
    gateway.call("POST", "/managed-services/x/database-users/u/reveal-password", {
      headers: { "idempotency-key": "r" },
    });
  const before = gateway.storedResponses.size;
  expect((await reveal()).json.password).not.toBe((await reveal()).json.password);
  expect(gateway.storedResponses.size).toBe(before);
});

test("many concurrent requests with one key get one response", async () => {
  const answers = await Promise.all(Array.from({ length: 200 }, () => create("crowd")));
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
  expect(answers.filter(({ headers }) => headers["idempotency-replayed"] === undefined).length).toBe(1);
});

test("requests with one key run one after the other", async () => {
  let reading = 0;
  let maxConcurrent = 0;
  const stored: StoredResponses = {
    async find() {
      reading += 1;
      maxConcurrent = Math.max(maxConcurrent, reading);
      await new Promise(setImmediate);
      reading -= 1;
      return undefined;
    },
    reserve: () => () => undefined,
    store: async () => undefined,
  };
  const calls = createIdempotentCalls({ stored, log: silentLog });
  const response = { status: 202, headers: {}, body: "", secret: false };
  const idempotency = {
    key: "k",
    scope: "s",
    principal: "p",
    organizationId: "o",
    bodyHash: "b",
    encode: () => response,
  };
  let executions = 0;
  const work = async () => {
    executions += 1;
    await new Promise(setImmediate);
    return { response, isStored: false, reached: true };
  };
  const signal = new AbortController().signal;
  const outcomes = await Promise.all(Array.from({ length: 100 }, () => calls.run(idempotency, signal, work)));
  expect([outcomes.length, executions, maxConcurrent]).toEqual([100, 100, 1]);
});

test("a key is 1 to 255 printable characters", async () => {
  for (const key of ["", "ä", "x".repeat(256)]) {
    const { status, json } = await create(key);
    expect(status).toBe(400);
    expect(json.errors[0]).toMatchObject({ field: "Idempotency-Key", pointer: null });
  }
});
