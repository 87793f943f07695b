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

test.each(["", " ", "a b", "a\tb", "a/b", "user@a", "a:99999", "a:b", "[::1", "ü.example", "a,b/"])(
  "the Host header %j is refused",
  (host) => {
    expect(target("/", "GET", ["host", host])).toMatchObject({ kind: "invalid" });
    expect(target("https://a/", "GET", ["host", host])).toMatchObject({ kind: "invalid" });
    expect(target("*", "OPTIONS", ["host", host])).toMatchObject({ kind: "invalid" });
    expect(target("/", "GET", [":authority", host])).toMatchObject({ kind: "invalid" });
  },
);

test.each(["a", "A.Example:8443", "127.0.0.1:1", "[::1]:8443", "my_host", "xn--tda.example."])(
  "the Host header %j names a host",
  (host) => {
    expect(target("/", "GET", ["host", host])).toEqual({ kind: "path", path: "/" });
    expect(target("/", "GET", [":authority", host])).toEqual({ kind: "path", path: "/" });
  },
);

test("a request without a Host header has a target: HTTP/1.0 and HTTP/2 allow it", () => {
  expect(target("/", "GET", [])).toEqual({ kind: "path", path: "/" });
});
