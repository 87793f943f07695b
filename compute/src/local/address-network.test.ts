import { expect, test } from "vitest";
import { addressNetworkOf, hostAddressesOf, overlap } from "./address-network.ts";

test.each([
  ["203.0.113.16/30", ["203.0.113.17", "203.0.113.18"]],
  ["203.0.113.16/31", ["203.0.113.16", "203.0.113.17"]],
  ["203.0.113.16/32", ["203.0.113.16"]],
])("the addresses of %s for machines are %j", (text, addresses) => {
  expect(hostAddressesOf(addressNetworkOf(text))).toEqual(addresses);
});

test("a large network counts across its bytes", () => {
  const addresses = hostAddressesOf(addressNetworkOf("198.51.0.0/16"));
  expect(addresses).toHaveLength(65_534);
  expect(addresses.slice(254, 257)).toEqual(["198.51.0.255", "198.51.1.0", "198.51.1.1"]);
});

test.each([
  ["203.0.113.17/28", "does not begin at its network's first address"],
  ["203.0.113.0/33", "is not a network of IPv4 addresses"],
  ["203.0.256.0/24", "is not a network of IPv4 addresses"],
  ["203.0.113.16", "is not a network of IPv4 addresses"],
  ["2001:db8::/64", "is an IPv6 network: machines have IPv4 addresses only"],
  ["10.0.0.0/8", "is larger than /16"],
])("%s is refused", (text, reason) => {
  expect(() => addressNetworkOf(text)).toThrow(reason);
});

test("two networks overlap when one has an address of the other", () => {
  const of = addressNetworkOf;
  expect(overlap(of("203.0.113.16/28"), of("203.0.113.0/24"))).toBe(true);
  expect(overlap(of("203.0.113.16/28"), of("203.0.113.32/28"))).toBe(false);
});
