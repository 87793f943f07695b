import { expect, test } from "vitest";
import { createClientAddresses } from "./client-address.ts";

const addresses = createClientAddresses({
  trustedProxies: ["10.0.0.0/8", "2001:db8:1::/48"],
  balancers: ["192.0.2.9"],
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["of a stranger's header nothing is believed",       "198.51.100.7",        "203.0.113.1",                           "198.51.100.7"],
  ["a trusted proxy without a header is itself",       "10.0.0.1",            undefined,                               "10.0.0.1"],
  ["a trusted proxy names its client",                 "10.0.0.1",            "203.0.113.1",                           "203.0.113.1"],
  ["an entry of the client itself is not read",        "10.0.0.1",            "1.1.1.1, 203.0.113.1",                  "203.0.113.1"],
  ["trusted proxies behind each other are passed",     "10.0.0.1",            "1.1.1.1, 203.0.113.1, 10.0.0.2",        "203.0.113.1"],
  ["an address between untrusted ones ends the walk",  "10.0.0.1",            "10.0.0.3, 203.0.113.1, 10.0.0.2",       "203.0.113.1"],
  ["a chain of trusted ones alone begins at its left", "10.0.0.1",            "10.0.0.3, 10.0.0.2",                    "10.0.0.3"],
  ["several headers are one list",                     "10.0.0.1",            ["1.1.1.1", "203.0.113.1"],              "203.0.113.1"],
  ["ports are left out",                               "10.0.0.1",            "203.0.113.1:4711",                      "203.0.113.1"],
  ["IPv6 comes in brackets or without",                "2001:db8:1::1",       "[2001:db8:2::5]:443",                   "2001:db8:2::5"],
  ["entries to the left of a word are not read",       "10.0.0.1",            "203.0.113.1, unknown",                  "10.0.0.1"],
  ["IPv4 in IPv6 is IPv4",                             "::ffff:10.0.0.1",     "::ffff:203.0.113.1",                    "203.0.113.1"],
  ["a balancer says nothing of its clients",           "192.0.2.9",           "203.0.113.1",                           "192.0.2.9"],
])("%s", (_, peer, header, client) => {
  expect(addresses.addressOf(peer, { headers: header === undefined ? {} : { "x-forwarded-for": header } })).toBe(client);
});

test("proxies and balancers have no source groups, and no header is read by default", () => {
  for (const address of ["10.0.0.1", "192.0.2.9"]) expect(addresses.sources(address)).toEqual([]);
  const none = createClientAddresses({ trustedProxies: [], balancers: [] });
  expect(none.addressOf("10.0.0.1", { headers: { "x-forwarded-for": "203.0.113.1" } })).toBe("10.0.0.1");
  expect(() => createClientAddresses({ trustedProxies: ["proxy.example"], balancers: [] })).toThrow();
});

test("an endless header is read from the right", () => {
  const header = `${"1.1.1.1, ".repeat(10_000)}10.0.0.2`;
  expect(addresses.addressOf("10.0.0.1", { headers: { "x-forwarded-for": header } })).toBe("1.1.1.1");
});
