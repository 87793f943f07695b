import { request } from "node:http";
import { silentLog } from "@holdfast/common/log.ts";
import { inheritedNames } from "@holdfast/testing/hostile/inherited-names.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BucketProxy, startBucketProxy } from "./bucket-proxy.ts";

let proxy: BucketProxy;

beforeAll(async () => {
  proxy = await startBucketProxy({
    location: {
      // No request of this file reaches the store.
      bucketUrl: "https://127.0.0.1:9/bucket",
      prefix: "",
      key: { id: "store", secret: "secret", region: "local" },
      ca: undefined,
      serverSideEncryption: false,
    },
    prefix: "registry/",
    now: Date.now,
    log: silentLog,
  });
});
afterAll(() => proxy.close());

function statusOf(method: string, path: string, headers: Readonly<Record<string, string>>, body = "") {
  return new Promise<number | undefined>((resolve, reject) => {
    const sent = request(proxy.endpoint + path, { method, headers, agent: false }, (response) => {
      resolve(response.resume().statusCode);
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const signed = () => ({ authorization: `AWS4-HMAC-SHA256 Credential=${proxy.key.id}/20261130/local/s3/aws4_request` });

test("objects outside of the prefix are refused, also those with the name of every object", async () => {
  for (const path of [
    "/bucket/backups/a",
    "/bucket/registry/../backups/a",
    "/bucket/registry/%2e%2e/a",
    "/other/registry/a",
  ])
    expect(await statusOf("GET", path, signed()), path).toBe(403);
  for (const word of inheritedNames) {
    expect(await statusOf("GET", `/${word}`, signed()), word).toBe(403);
    expect(await statusOf("PUT", `/bucket/${word}`, signed()), word).toBe(403);
    expect(await statusOf("GET", "/bucket/registry/a", { authorization: `Credential=${word}/` }), word).toBe(403);
  }
});

test("a deletion of several objects is refused with a foreign key, and without a length", async () => {
  const body = "<Delete><Object><Key>registry/a</Key></Object><Object><Key>backups/b</Key></Object></Delete>";
  const own = { ...signed(), "content-length": String(body.length) };
  expect(await statusOf("POST", "/bucket?delete", own, body)).toBe(403);
  const only = "<Delete><Object><Key>registry/a</Key></Object></Delete>";
  expect(await statusOf("POST", "/bucket?delete", { ...signed(), "transfer-encoding": "chunked" }, only)).toBe(403);
});
