import { expect, test } from "vitest";
import { browserUrlFaults, browserUrlForm } from "./checked-url.ts";

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["https://shop.example.com/a?b=c",  true],
  ["HTTPS://shop.example.com",        true],
  ["http://localhost:8080/callback",  true],
  ["http://[::1]/",                   true],
  ["https:shop.example.com",          false],
  ["https:/shop.example.com",         false],
  ["https:///shop.example.com",       false],
  ["ftp://shop.example.com",          false],
  ["https://shop.example.com/ü",      false],
  ["https://shop.example.com/ x",     false],
  ["shop.example.com",                false],
  ["",                                false],
  ["http://shop.example.com",          false],
  ["HTTP://0",                         false],
  ["HTTP://localhost:3000/a?b",        true],
  ["https://shop.example.com/#a",      false],
  ["HtTP://[::1]:83/{",                false],
  ["https://shop.example.com/[a]",     false],
])("%s is a URL for browsers: %s, and the API's description says so", (text, fits) => {
  expect(browserUrlFaults("home_url", text).length === 0).toBe(fits);
  expect(new RegExp(browserUrlForm.pattern).test(text)).toBe(fits);
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["http://shop.example.com",     "must begin with https://, or with http:// on loopback"],
  ["https://shop.example.com/%zz", "must have other characters percent-encoded"],
  ["https://a:b@shop.example.com", "must not have credentials"],
  ["https://shop.example.com/#a", "must not have a fragment"],
])("%s %s", (text, detail) => {
  expect(browserUrlFaults("home_url", text)).toMatchObject([{ field: "home_url", pointer: "/home_url", detail }]);
});
