import { expect, test } from "vitest";
import { type ForwardingDeps, serviceRoute } from "./up.ts";

const passage = (forwards: boolean): ForwardingDeps => ({
  deviceOf: (address) => (address === "192.0.2.1" ? "eth0" : undefined),
  forwards: () => forwards,
});

test("the instructions have the route, and the missing forwarding of this machine", () => {
  expect(serviceRoute("10.77.0.0/16", "192.0.2.1", passage(false)).slice(-2)).toEqual([
    "  ip route add 10.77.0.0/16 via 192.0.2.1",
    "  sysctl net.ipv4.conf.eth0.forwarding=1     # on this machine, which does not forward yet",
  ]);
});

test.each([
  ["192.0.2.1", true],
  ["203.0.113.9", false],
])("for %s the instructions have only the route when nothing blocks it", (address, forwards) => {
  const lines = serviceRoute("10.77.0.0/16", address, passage(forwards));
  expect(lines.at(-1)).toBe(`  ip route add 10.77.0.0/16 via ${address}`);
});

test("forwarding of this host is read from its kernel", () => {
  expect(serviceRoute("10.77.0.0/16", "127.0.0.1").join("\n")).toContain("via 127.0.0.1");
});
