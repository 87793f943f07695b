import { expect, test } from "vitest";
import { networkTraffic, trafficOf } from "./network-traffic.ts";

const table = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       7       0    0    0    0     0          0         0        8       0    0    0    0     0       0          0
  eth0:123456789012      90    0    0    0     0          0         0    46348     119    0    0    0     0       0          0
`;

test("reads the bytes of one interface, also without a blank before its figures", () => {
  expect(trafficOf(table, "eth0")).toEqual({ receivedBytes: 123_456_789_012, sentBytes: 46_348 });
  expect(trafficOf(table, "lo")).toEqual({ receivedBytes: 7, sentBytes: 8 });
  expect(trafficOf(table, "eth")).toBeUndefined();
});

test("every host has a loopback interface with equal bytes in both directions", async () => {
  const lo = await networkTraffic("lo");
  expect(lo?.sentBytes).toBe(lo?.receivedBytes);
});
