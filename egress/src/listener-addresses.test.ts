import { expect, test } from "vitest";
import { createAddressPolicy, createListenerAddresses } from "./address-policy.ts";
import { ownAddresses } from "./create-egress.ts";

const own = ownAddresses({
  listeners: ["https://etcd.internal:2379", "postgresql://db.internal/holdfast", "https://objects.example:443"],
  addresses: [],
  members: () => ["controller-2.internal:8444"],
  loopbackBlock: "127.99",
  machineAddresses: () => [],
});
const addresses = new Map([
  ["etcd.internal", ["10.1.0.5", "fd00::5"]],
  ["db.internal", ["10.1.0.6"]],
  ["objects.example", ["8.8.4.4"]],
  ["controller-2.internal", ["10.1.0.7"]],
]);

test("a listener that is given by its name is refused at the private addresses of the name", async () => {
  const policy = createAddressPolicy(["10.0.0.0/8", "fd00::/8"], own, async (name) => addresses.get(name) ?? []);
  for (const [address, port] of [
    ["10.1.0.5", 2_379],
    ["fd00:0::5", 2_379],
    ["::ffff:10.1.0.5", 2_379],
    ["10.1.0.6", 5_432],
    ["10.1.0.7", 8_444],
  ] as const)
    expect(await policy.refusal(address, port), `${address} ${port}`).toBe("own");
  expect(await policy.refusal("10.1.0.5", 443)).toBeUndefined();
  expect(await policy.refusal("10.1.0.8", 2_379)).toBeUndefined();
});

test("public addresses of a name can belong to others, and are allowed", async () => {
  const policy = createAddressPolicy([], own, async (name) => addresses.get(name) ?? []);
  expect(await policy.refusal("8.8.4.4", 443)).toBeUndefined();
});

test("names are resolved by the hosts file too", async () => {
  const named = { ...own, listeners: () => [{ host: "localhost", port: 2_379 }] };
  expect(await createAddressPolicy(["127.0.0.0/8"], named).refusal("127.0.0.1", 2_379)).toBe("own");
  expect(await createListenerAddresses()("localhost")).toContain("127.0.0.1");
});

test("addresses are cached, and stay valid if a later lookup fails", async () => {
  let nowMs = 0;
  const lookups: string[] = [];
  const addressesOf = createListenerAddresses({
    monotonicMs: () => nowMs,
    async resolve(name) {
      lookups.push(name);
      if (lookups.length > 1) throw new Error("SERVFAIL");
      return ["10.1.0.5"];
    },
  });
  for (nowMs of [0, 29_999, 30_000, 60_000]) expect(await addressesOf("etcd.internal")).toEqual(["10.1.0.5"]);
  expect(lookups).toHaveLength(3);
  expect(await createListenerAddresses({ resolve: () => Promise.reject(new Error("ENOTFOUND")) })("x")).toEqual([]);
});
