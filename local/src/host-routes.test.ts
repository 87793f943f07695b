import { expect, test } from "vitest";
import { isUnrouted, routesOf } from "./host-routes.ts";

const table = [
  "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT",
  "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0",
  "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0",
  "wg0\t00004D0A\t00000000\t0001\t0\t0\t0\t0000FEFF\t0\t0\t0",
  "*\t00005A0A\t00000000\t0200\t0\t0\t-179\t0000FFFF\t0\t0\t0",
].join("\n");

test("networks and masks are parsed in network byte order", () => {
  expect(routesOf(table).map(({ network, mask }) => [network.toString(16), mask.toString(16)])).toEqual([
    ["0", "0"],
    ["c0000200", "ffffff00"],
    ["a4d0000", "fffe0000"],
  ]);
});

test.each([
  ["10.77", false],
  ["10.76", false],
  ["10.78", true],
  ["10.90", true],
  ["192.0", false],
])("addresses of %s are free: %s", (block, free) => {
  // 10.77.0.0/15 as the kernel masks it is 10.76.0.0/15.
  expect(isUnrouted(block, table)).toBe(free);
});
