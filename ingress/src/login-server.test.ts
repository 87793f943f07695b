import { expect, test } from "vitest";
import { localPath } from "./login-server.ts";

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
