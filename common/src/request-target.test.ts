import { expect, test } from "vitest";
import { requestTargetOf } from "./request-target.ts";

const target = (url: string, method = "GET", rawHeaders = ["host", "x"]) =>
  requestTargetOf({ method, url, rawHeaders });

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["/healthz?x=/",                    { kind: "path", path: "/healthz?x=/" }],
  ["//[",                             { kind: "path", path: "//[" }],
  ["https://127.0.0.1:443/healthz?a", { kind: "path", path: "/healthz?a", host: "127.0.0.1:443" }],
  ["HTTP://[::1]:8443/a%2fb",         { kind: "path", path: "/a%2fb", host: "[::1]:8443" }],
  ["https://api.example",             { kind: "path", path: "/", host: "api.example" }],
  ["https://api.example?a=1",         { kind: "path", path: "/?a=1", host: "api.example" }],
])("%s names a path", (url, expected) => {
  expect(target(url)).toEqual(expected);
});

test.each([
  "http://[::1",
  "http://[",
  "http://",
  "http:///",
  "http://a:99999/",
  "http://%zz/",
  "http://user@host/",
  "https://host/a#b",
  "\\\\x",
  "*",
  "?",
  "#",
  "",
  "javascript:1",
  "ftp://host/",
])("%j is no target", (url) => {
  expect(target(url)).toMatchObject({ kind: "invalid" });
  expect(target(url, "POST")).toMatchObject({ kind: "invalid" });
});

test("OPTIONS * is a request to the server itself", () => {
  expect(target("*", "OPTIONS")).toEqual({ kind: "server" });
});

test("two Host headers are refused, equal ones too", () => {
  expect(target("/", "GET", ["Host", "a", "accept", "host", "HOST", "b"])).toMatchObject({ kind: "invalid" });
  expect(target("/", "GET", ["host", "a", "host", "a"])).toMatchObject({ kind: "invalid" });
  expect(target("/", "GET", ["host", "a", "accept", "host"])).toMatchObject({ kind: "path" });
});
