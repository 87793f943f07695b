import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { afterAll, beforeAll, expect, test } from "vitest";
import { owner, startTestGateway, type TestGateway } from "@holdfast/testing/api/test-gateway.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

let gateway: TestGateway;
let session: ClientHttp2Session;
let id = "";

beforeAll(async () => {
  gateway = await startTestGateway();
  const body = { name: "orders", database_type: "postgresql", plan_name: "dev", storage_size_gb: 1 };
  id = (await gateway.call("POST", "/managed-services", { body })).json.id;
  session = connect(`https://127.0.0.1:${gateway.port}`, { ca: gateway.ca, servername: "localhost" });
});
afterAll(async () => {
  session.destroy();
  await gateway.close();
});

/** Follows the logs over HTTP/2; resolves at the headers of the response. */
async function follow(): Promise<{ readonly status: number; readonly stream: ClientHttp2Stream }> {
  const stream = session.request({ ":path": `/managed-services/${id}/logs?follow=true`, authorization: owner });
  stream.on("error", () => undefined).resume();
  const [headers] = (await once(stream, "response")) as [Record<string, string>];
  return { status: Number(headers[":status"]), stream };
}

test("a follower that cancels its HTTP/2 stream leaves the limit of concurrent streams", async () => {
  const followers = await Promise.all(Array.from({ length: 3 }, () => follow()));
  expect(followers.map(({ status }) => status)).toEqual(followers.map(() => 200));
  expect((await follow()).status).toBe(429);
  for (const { stream } of followers) stream.close(constants.NGHTTP2_CANCEL);
  const next = await waitUntil("a place is free", async () => {
    const { status, stream } = await follow();
    stream.close(constants.NGHTTP2_CANCEL);
    return status === 200;
  });
  expect(next).toBe(true);
});
