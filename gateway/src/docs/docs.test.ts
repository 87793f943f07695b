import { startTestGateway, type TestGateway } from "@holdfast/testing/api/test-gateway.ts";
import { afterAll, beforeAll, expect, test } from "vitest";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.close());

const get = (path: string, headers: Record<string, string> = {}) =>
  gateway.call("GET", path, { authorization: null, headers });

test("the reference loads only files of this server and needs no credential", async () => {
  const { status, headers, text } = await get("/docs");
  expect(status).toBe(200);
  expect(headers["content-security-policy"]).toContain("default-src 'none'");
  expect(headers["content-security-policy"]).not.toContain("unsafe");
  const loaded = [...text.matchAll(/(?:src|href)="([^"]*)"/g)]
    .map(([, path]) => path ?? "")
    .filter((path) => path !== "data:,");
  expect(loaded).toContain("/docs/assets/swagger-ui-bundle.js");
  for (const path of loaded) {
    expect(path).toMatch(/^\//);
    expect((await get(path)).status, path).toBe(200);
  }
  expect(text).not.toMatch(/<style|<script>|style="|onload/);
});

test("files are compressed for clients that accept gzip", async () => {
  const { headers } = await get("/docs/assets/swagger-ui-bundle.js", { "accept-encoding": "gzip, br" });
  expect(headers["content-encoding"]).toBe("gzip");
  expect(Number(headers["content-length"])).toBeLessThan(600_000);
  expect(headers["content-type"]).toBe("text/javascript; charset=utf-8");
});

test("no other file is served", async () => {
  for (const path of ["/docs/assets/", "/docs/assets/package.json", "/docs/assets/..%2fdocs.ts", "/docs/nothing"])
    expect((await get(path)).status).toBe(404);
  expect((await gateway.call("POST", "/docs", { authorization: null })).status).toBe(405);
});

test("every error has a page", async () => {
  const { text } = await get("/docs/errors");
  const pages = [...text.matchAll(/href="(\/docs\/errors\/[^"]*)"/g)].map(([, path]) => path ?? "");
  expect(pages.length).toBeGreaterThan(20);
  for (const path of pages) expect((await get(path)).status).toBe(200);
});
