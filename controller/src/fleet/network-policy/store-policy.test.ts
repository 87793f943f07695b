import { silentLog } from "@holdfast/common/log.ts";
import { expect, test } from "vitest";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createStorePolicy, storeRulesOf } from "./store-policy.ts";

test("every machine may connect to each address of the object store, at its port", () => {
  expect(storeRulesOf(["10.1.0.1", "2001:db8::2"], 8449)).toEqual([
    { owner: { kind: "object-store", id: "10.1.0.1" }, to: "10.1.0.1", port: 8449, from: ["0.0.0.0/0"] },
    { owner: { kind: "object-store", id: "2001:db8::2" }, to: "2001:db8::2", port: 8449, from: ["::/0"] },
  ]);
});

test("subscribers are called when addresses are resolved; without a store there are none", async () => {
  let calls = 0;
  const policy = createStorePolicy({ addresses: async () => ["10.1.0.1"], port: 443 }, silentLog);
  policy.subscribe(() => (calls += 1));
  await waitUntil("the subscriber is called", () => calls === 1, { everyMs: 1 });
  expect(policy.rulesOn("any")).toHaveLength(1);
  policy.close();
  expect(createStorePolicy(undefined, silentLog).rulesOn("any")).toEqual([]);
});
