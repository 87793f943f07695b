import { expect, test } from "vitest";
import {
  browserUrlFaults,
  browserUrlForm,
  exactUrlFaults,
  homeUrlForm,
  redirectUriFaults,
  redirectUriForm,
} from "./checked-url.ts";

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

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["https://shop.example.com/callback",      true],
  ["http://127.0.0.1:8080/callback",         true],
  ["com.example.shop:/oauth2redirect",       true],
  ["com.example.shop://callback/a%20b?c=d",  true],
  ["com.example-shop.app2:/",                true],
  ["https://*.example.com/callback",         false],
  ["https://shop.example.com/*",             false],
  ["http://localhost/*",                     false],
  ["com.example.shop:/*",                    false],
  ["myapp://callback",                       false],
  ["javascript:alert(1)",                    false],
  ["com.example.shop:opaque",                false],
  ["com.example.shop:/a#b",                  false],
  ["com.example.shop:/a%zz",                 false],
  ["Com.Example.shop:/a",                    false],
  ["com..example:/a",                        false],
  ["com.example.shop:/a b",                  false],
])("%s is a redirect URI: %s, and the API's description says so", (text, fits) => {
  expect(redirectUriFaults("redirect_uris[0]", text).length === 0).toBe(fits);
  expect(new RegExp(redirectUriForm.pattern).test(text)).toBe(fits);
});

test.each(["https://*.example.com", "https://shop.example.com/*", "http://localhost/*"])(
  "%s has a wildcard, which no URL that is compared exactly may have",
  (text) => {
    expect(exactUrlFaults("home_url", text)).toMatchObject([{ detail: expect.stringContaining("list each one") }]);
    expect(new RegExp(homeUrlForm.pattern).test(text)).toBe(false);
    expect(browserUrlFaults("home_url", text)).toEqual([]);
  },
);

test.each(["myapp:/callback", "myapp://callback", "com.example.shop:opaque", "com.example.shop:/a#b", "javascript:x"])(
  "%s is refused with the form of a native app's URI",
  (text) => {
    expect(redirectUriFaults("redirect_uris[0]", text)).toMatchObject([
      { field: "redirect_uris[0]", detail: expect.stringContaining("such as com.example.shop:/callback") },
    ]);
  },
);

test("a native app's URI with a wildcard is refused for the wildcard", () => {
  expect(redirectUriFaults("u", "com.example.shop:/*")).toMatchObject([
    { detail: expect.stringContaining("must not contain *") },
  ]);
});
