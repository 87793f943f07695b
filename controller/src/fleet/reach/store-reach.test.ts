import { silentLog } from "@holdfast/common/log.ts";
import { expect, test } from "vitest";
import { waitUntil } from "../../../../test/support/wait-until.ts";
import { createStoreReach, storeRulesOf } from "./store-reach.ts";

test("every machine may call each address of the object store, at its port", () => {
  expect(storeRulesOf(["10.1.0.1", "2001:db8::2"], 8449)).toEqual([
    { owner: { kind: "object-store", id: "10.1.0.1" }, to: "10.1.0.1", port: 8449, from: ["0.0.0.0/0"] },
    { owner: { kind: "object-store", id: "2001:db8::2" }, to: "2001:db8::2", port: 8449, from: ["::/0"] },
  ]);
});

test("addresses are told when they are known; without a store there are none", async () => {
  let told = 0;
  const reach = createStoreReach({ addresses: async () => ["10.1.0.1"], port: 443 }, silentLog);
  reach.subscribe(() => (told += 1));
  await waitUntil("it told", () => told === 1, { everyMs: 1 });
  expect(reach.rulesOn("any")).toHaveLength(1);
  reach.close();
  expect(createStoreReach(undefined, silentLog).rulesOn("any")).toEqual([]);
});
