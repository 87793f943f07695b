import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { startTestGateway, type TestGateway } from "@holdfast/testing/api/test-gateway.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readConsoleFiles } from "./console.ts";

const directory = mkdtempSync(join(tmpdir(), "holdfast-console-test-"));
let gateway: TestGateway;
let reads = 0;
beforeAll(async () => {
  writeFileSync(join(directory, "index.html"), "<!doctype html><title>Holdfast</title>");
  writeFileSync(join(directory, "console-0123.js"), "export const text = 1;");
  writeFileSync(join(directory, "notes.txt"), "no file of the console");
  gateway = await startTestGateway([], {
    console: () => {
      reads += 1;
      return readConsoleFiles(directory);
    },
  });
});
afterAll(async () => {
  await gateway?.close();
  rmSync(directory, { recursive: true, force: true });
});

const get = (path: string, headers: Record<string, string> = {}) =>
  gateway.call("GET", path, { authorization: null, headers });

test.each(["/console/", "/console/services", "/console/services/a%2Fb/logs"])("%s is the page", async (path) => {
  const { status, headers, text } = await get(path);
  expect([status, text]).toEqual([200, "<!doctype html><title>Holdfast</title>"]);
  expect(headers["cache-control"]).toBe("no-store");
  expect(headers["x-content-type-options"]).toBe("nosniff");
  expect(headers["referrer-policy"]).toBe("no-referrer");
  expect(headers["cross-origin-opener-policy"]).toBe("same-origin");
  const policy = String(headers["content-security-policy"]);
  for (const rule of ["default-src 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"])
    expect(policy).toContain(rule);
  expect(policy).not.toContain("unsafe");
});

test("a browser at the root is redirected to the console, and no other client", async () => {
  const { status, headers } = await get("/", { accept: "text/html,*/*" });
  expect([status, headers["location"]]).toEqual([302, "/console/"]);
  expect((await get("/console")).headers["location"]).toBe("/console/");
  expect((await get("/", { accept: "application/json" })).status).toBe(404);
  expect((await gateway.call("GET", "/")).status).toBe(404);
});

test("an asset is immutable, and compressed in advance", async () => {
  const path = "/console/assets/console-0123.js";
  const plain = await get(path);
  expect(plain.headers["cache-control"]).toContain("immutable");
  expect(plain.headers["content-type"]).toBe("text/javascript; charset=utf-8");
  expect((await get(path, { "accept-encoding": "gzip, br" })).headers["content-encoding"]).toBe("br");
  expect((await get(path, { "accept-encoding": "gzip" })).headers["content-encoding"]).toBe("gzip");
  const { assets } = await readConsoleFiles(directory);
  const file = assets.get("console-0123.js");
  for (const bytes of [brotliDecompressSync(file?.brotli ?? ""), gunzipSync(file?.gzip ?? "")])
    expect(bytes.toString()).toBe(plain.text);
});

test("no other file is served, and the console is read-only", async () => {
  for (const name of ["notes.txt", "index.html", "..%2findex.html", ""])
    expect((await get(`/console/assets/${name}`)).status, name).toBe(404);
  expect((await gateway.call("POST", "/console/", { authorization: null })).status).toBe(405);
  const before = reads;
  await get("/catalog");
  expect(reads).toBe(before);
});
