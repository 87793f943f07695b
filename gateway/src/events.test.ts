import { get } from "node:https";
import { afterAll, beforeAll, expect, test } from "vitest";
import { owner, startTestGateway, type TestGateway } from "@holdfast/testing/api/test-gateway.ts";

let gateway: TestGateway;
let id = "";

beforeAll(async () => {
  gateway = await startTestGateway();
  const body = { name: "orders", database_type: "postgresql", plan_name: "dev", storage_size_gb: 1 };
  id = (await gateway.call("POST", "/managed-services", { body })).json.id;
});
afterAll(() => gateway.close());

/** Reads the stream until `enough` says so, then leaves. */
function follow(
  path: string,
  headers: Record<string, string>,
  enough: (text: string) => boolean,
): Promise<{ text: string; type: string | undefined }> {
  return new Promise((resolve, reject) => {
    const options = {
      host: "127.0.0.1",
      port: gateway.port,
      ca: gateway.ca,
      servername: "localhost",
      path,
      headers: { authorization: owner, ...headers },
      agent: false,
    };
    const outgoing = get(options, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
        if (!enough(text)) return;
        resolve({ text, type: response.headers["content-type"] });
        outgoing.destroy();
      });
      response.on("error", () => undefined);
    });
    outgoing.on("error", reject);
  });
}

test("following sends stored entries, then new ones, with cursors as ids", async () => {
  gateway.state.logs.push("one", "two");
  let waits = true;
  const { text, type } = await follow(`/managed-services/${id}/logs?follow=true`, {}, (soFar) => {
    if (waits && soFar.includes("two")) {
      waits = false;
      gateway.state.logs.push("three");
    }
    return soFar.includes("three") && soFar.endsWith("\n\n");
  });
  expect(type).toBe("text/event-stream");
  const events = text.split("\n\n").filter((event) => event.includes("data: "));
  expect(events.map((event) => JSON.parse(event.slice(event.indexOf("data: ") + 6)).message)).toEqual([
    "one",
    "two",
    "three",
  ]);
  expect(events.map((event) => /^id: (.*)$/m.exec(event)?.[1])).toEqual([undefined, "2", "3"]);
});

test("Last-Event-ID resumes the stream", async () => {
  const { text } = await follow(`/managed-services/${id}/logs?follow=true`, { "last-event-id": "2" }, (soFar) =>
    soFar.includes("data: "),
  );
  expect(text).toContain("three");
  expect(text).not.toContain('"one"');
});

test("without follow it is a plain list, and errors before the stream are problems", async () => {
  const { json } = await gateway.call("GET", `/managed-services/${id}/logs?limit=1`);
  expect(json).toMatchObject({
    lines: [{ message: "one", level: "info", component: "engine" }],
    next_cursor: "1",
    has_more: true,
  });
  expect((await gateway.call("GET", "/managed-services/none/logs?follow=true")).json).toMatchObject({ status: 404 });
});

test("nothing is read after the client has disconnected", async () => {
  const other = await newService("other");
  await follow(`/managed-services/${id}/logs?follow=true`, {}, (text) => text.includes("data"));
  gateway.logged.length = 0;
  gateway.state.services.delete(id);
  // Another stream is read twice, each time after the same pause.
  const entries = ["read", "read again"];
  await follow(`/managed-services/${other}/logs?follow=true`, {}, (text) => {
    if (text.includes(gateway.state.logs.at(-1) ?? "")) gateway.state.logs.push(...entries.splice(0, 1));
    return text.includes("read again");
  });
  expect(gateway.logged).toEqual([]);
});

async function newService(name: string): Promise<string> {
  const body = { name, database_type: "postgresql", plan_name: "dev", storage_size_gb: 1 };
  return (await gateway.call("POST", "/managed-services", { body })).json.id;
}

test("a revoked credential ends the stream before further entries are sent", async () => {
  const id = await newService("revoked");
  const { text } = await follow(`/managed-services/${id}/logs?follow=true`, {}, (soFar) => {
    if (soFar.includes(": following")) {
      gateway.revoked.add(owner);
      gateway.state.logs.push("a secret of later");
    }
    return soFar.includes("event: error") && soFar.endsWith("\n\n");
  });
  gateway.revoked.delete(owner);
  expect(text).toContain('"status":401');
  expect(text).not.toContain("a secret of later");
});

test("the limit of streams of a credential applies until one is closed", async () => {
  const id = await newService("many");
  const path = `/managed-services/${id}/logs?follow=true`;
  const leave: (() => void)[] = [];
  const open = () =>
    new Promise<number>((resolve, reject) => {
      const options = { host: "127.0.0.1", port: gateway.port, ca: gateway.ca, servername: "localhost", path };
      const outgoing = get({ ...options, headers: { authorization: owner }, agent: false }, (response) => {
        response.resume().on("error", () => undefined);
        leave.push(() => outgoing.destroy());
        resolve(response.statusCode ?? 0);
      });
      outgoing.on("error", reject);
    });
  const statuses = [await open(), await open(), await open(), await open()];
  expect(statuses).toEqual([200, 200, 200, 429]);
  leave[0]?.();
  await expect.poll(open).toBe(200);
  for (const each of leave) each();
});
