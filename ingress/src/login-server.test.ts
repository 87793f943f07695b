import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { inheritedNames } from "@holdfast/testing/hostile/inherited-names.ts";
import { expect, onTestFinished, test } from "vitest";
import { appHeader, localPath, loginPath, startLoginServer } from "./login-server.ts";

// biome-ignore format: a table, aligned so that it reads as one
const cases: readonly (readonly [requested: string, path: string])[] = [
  ["/",                      "/"],
  ["/a/b?c=d&e=%2F",         "/a/b?c=d&e=%2F"],
  ["//evil.test/",           "/"],
  ["/\\evil.test/",          "/"],
  ["/a\\b",                  "/"],
  ["https://evil.test/",     "/"],
  ["javascript:alert(1)",    "/"],
  ["/a\r\nset-cookie: a=b",  "/"],
  ["/ä",                     "/"],
  ["",                       "/"],
  [`/${"a".repeat(2_000)}`,  "/"],
];

test.each(cases)("a sign-in for %j goes to %s", (requested, path) => {
  expect(localPath(requested)).toBe(path);
});

test("names that every object inherits are no apps, paths, fields or methods", async () => {
  const directory = mkdtempSync(join(tmpdir(), "hf-login-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const socketPath = join(directory, "login.sock");
  const login = { key: "k".repeat(32), passwordHash: createHash("sha256").update("of the test").digest("hex") };
  const routes = new Map([["shop", { login }]]);
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (message: string) => void warnings.push(message) };
  const routeOf = (appId: string) => routes.get(appId);
  const server = await startLoginServer({ socket: socketPath, uid: undefined, routeOf, clock: systemClock, log });
  onTestFinished(() => server.close());
  const send = (method: string, path: string, headers: Record<string, string>, body = "") =>
    new Promise<number | undefined>((resolve, reject) => {
      const sized = method === "POST" ? { "content-length": String(Buffer.byteLength(body)) } : {};
      const outgoing = request({ socketPath, method, path, headers: { ...headers, ...sized } }, (response) => {
        text(response).then(() => resolve(response.statusCode), reject);
      });
      outgoing.on("error", reject).end(body);
    });
  for (const word of inheritedNames) {
    const from = { "x-forwarded-for": word };
    expect(await send("GET", `/${word}`, { [appHeader]: "shop", accept: "text/html" })).toBe(401);
    expect(await send("GET", `/${word}`, { [appHeader]: word, [word]: word })).toBe(401);
    expect(await send("POST", loginPath, { ...from, [appHeader]: word }, "username=admin")).toBe(404);
    expect(await send("POST", loginPath, { ...from, [appHeader]: "shop" }, `${word}=${word}`)).toBe(401);
    const form = `username=admin&password=of+the+test&${word}=${word}&return_to=/${word}`;
    expect(await send("POST", loginPath, { ...from, [appHeader]: "shop" }, form)).toBe(303);
    // The HTTP parser has no such method.
    expect(await send(word, loginPath, from)).toBe(400);
  }
  expect(warnings).toEqual([]);
});
