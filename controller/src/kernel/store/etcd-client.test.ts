import { silentLog } from "@holdfast/common/log.ts";
import { createAddressPolicy } from "@holdfast/egress/address-policy.ts";
import { ownAddresses } from "@holdfast/egress/create-egress.ts";
import { expect, onTestFinished, test } from "vitest";
import { startTestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { createEtcdMembers } from "./etcd-client.ts";

test("the ports of etcd's members for each other are refused as targets, and stay so while etcd is down", async () => {
  const etcd = await startTestEtcd();
  onTestFinished(() => etcd.stop());
  const members = createEtcdMembers({ hosts: [etcd.url], log: silentLog });
  onTestFinished(() => members.close());
  await members.refresh();
  const [peer = 0, client] = members.listeners.map((url) => Number(new URL(url).port));
  expect(members.listeners).toEqual([`http://127.0.0.1:${peer}`, etcd.url]);
  expect(client).toBe(etcd.port);
  await etcd.kill();
  await expect(members.refresh()).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
  const own = ownAddresses({
    listeners: [],
    addresses: [],
    members: () => members.listeners,
    loopbackBlock: "127.99",
    machineAddresses: () => [],
  });
  expect(await createAddressPolicy(["127.0.0.0/8"], own).refusal("127.0.0.1", peer)).toBe("own");
});
