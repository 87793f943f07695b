import { expect, test } from "vitest";
import { completeDelivery } from "./delivery-endpoints.ts";

const withEndpoints = (
  before: Parameters<typeof completeDelivery>[0],
  after: Parameters<typeof completeDelivery>[1],
  targets: Parameters<typeof completeDelivery>[2]["targets"],
) => completeDelivery(before, after, { targets, isStopped: false });
const delivery = { generation: 3, releaseIds: ["a"], servingReleaseId: "a" };
const target = (host: string, ...addresses: string[]) => ({ host, port: 5_432, addresses });
const orders = target("orders.private.test", "10.0.0.1");
const users = target("users.private.test", "10.0.0.2");

test("endpoints that change are a delivery of their own", () => {
  const first = withEndpoints(delivery, delivery, [orders]);
  expect(first).toEqual({ ...delivery, generation: 4, endpoints: [{ ...orders, relay: 1 }] });
  expect(withEndpoints(first, first, [orders])).toBe(first);
  const moved = target(orders.host, "10.0.0.9");
  expect(withEndpoints(first, first, [moved])).toMatchObject({ generation: 5, endpoints: [{ ...moved, relay: 1 }] });
  expect(withEndpoints(first, first, [])).toMatchObject({ generation: 5, endpoints: [] });
  expect(withEndpoints(null, null, [orders])).toBeNull();
});

test("a delivery of other releases has the next generation once", () => {
  const next = { generation: 4, releaseIds: ["a", "b"], servingReleaseId: "a" };
  expect(withEndpoints(delivery, next, [orders])).toMatchObject({ generation: 4, endpoints: [{ relay: 1 }] });
});

test("an endpoint keeps its relay, and a new one gets a free one", () => {
  const first = withEndpoints(delivery, delivery, [users]);
  const both = withEndpoints(first, first, [orders, users]);
  expect(both?.endpoints).toEqual([
    { ...orders, relay: 2 },
    { ...users, relay: 1 },
  ]);
  const third = withEndpoints(both, both, [orders, target("x.private.test", "10.0.0.3")]);
  expect(third?.endpoints?.map(({ relay }) => relay)).toEqual([2, 1]);
});

test("private names find a relay before public ones", () => {
  const many = Array.from({ length: 40 }, (_, n) => target(`a${n}.test`, "10.0.0.1"));
  const endpoints = withEndpoints(delivery, delivery, [...many, orders])?.endpoints ?? [];
  expect(endpoints).toHaveLength(32);
  expect(endpoints[0]).toMatchObject({ host: orders.host });
});

test("the first endpoint has a relay before all others", () => {
  const many = Array.from({ length: 40 }, (_, n) => target(`a${n}.private.test`, "10.0.0.1"));
  const first = target("z.private.test", "10.0.0.3");
  const endpoints = completeDelivery(delivery, delivery, { first, targets: many, isStopped: false })?.endpoints;
  expect(endpoints).toHaveLength(32);
  expect(endpoints?.[0]).toMatchObject(first);
});

test("a stop and a start are deliveries", () => {
  const stop = completeDelivery(delivery, delivery, { targets: [], isStopped: true });
  expect(stop).toMatchObject({ generation: 4, isStopped: true });
  expect(completeDelivery(stop, stop, { targets: [], isStopped: true })).toBe(stop);
  const start = completeDelivery(stop, stop, { targets: [], isStopped: false });
  expect(start).toMatchObject({ generation: 5 });
  expect(start).not.toHaveProperty("isStopped");
});
