import { expect, test } from "vitest";
import { createSourceGroups } from "./source-groups.ts";

const names = (address: string, balancers?: readonly string[]) =>
  createSourceGroups(balancers)(address).map(({ name, factor }) => `${name} ${factor}`);

test("an IPv4 address is one source, also when mapped into IPv6", () => {
  expect(names("192.0.2.7")).toEqual(["192.0.2.7 1"]);
  expect(names("::ffff:192.0.2.7")).toEqual(["192.0.2.7 1"]);
});

test("an IPv6 address counts as its /64, /56 and /48", () => {
  expect(names("2001:db8:1:2ab:3::4")).toEqual(["2001:db8:1:2ab/64 1", "2001:db8:1:2/56 4", "2001:db8:1/48 16"]);
  expect(names("2001:db8::1")[0]).toBe("2001:db8:0:0/64 1");
  expect(names("2001:DB8::1%eth0")[0]).toBe("2001:db8:0:0/64 1");
  expect(names("::1")[0]).toBe("0:0:0:0/64 1");
});

test("a load balancer has no groups", () => {
  const balancers = ["10.0.0.0/8", "2001:db8:ff::/48"];
  expect(names("10.1.2.3", balancers)).toEqual([]);
  expect(names("2001:db8:ff::1", balancers)).toEqual([]);
  expect(names("11.1.2.3", balancers)).toEqual(["11.1.2.3 1"]);
});

test("an invalid network is rejected", () => {
  expect(() => createSourceGroups(["nonsense"])).toThrow();
});
