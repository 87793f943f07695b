import { expect, onTestFinished, test } from "vitest";
import { readyHost, testHostFacts } from "@holdfast/testing/platform/ready-host.ts";
import { openEgress } from "./egress-system.ts";
import { createProcessMetrics } from "./kernel/metrics/process-metrics.ts";

test("listeners that controllers, proxies, hosts and etcd report are refused here and by every data plane", async () => {
  const facts = { ...testHostFacts, listeners: ["10.3.0.1:8450", "not a listener", "203.0.113.3:8450"] };
  const { close, users, ownListeners } = openEgress(
    {
      listeners: ["postgresql://10.1.0.2/holdfast"],
      ownAddresses: [],
      fleet: { listeners: [], loopbackBlock: "127.99" },
      hosts: () => [{ object: readyHost("far", { address: "10.3.0.1:8450" }, {}, { facts }) }],
      machines: () => [],
      proxies: () => [{ object: { status: { listeners: ["10.4.0.1:8452"] } } }],
      controllers: () => [{ address: "10.2.0.1:8444", listeners: ["10.2.0.1:8443"] }],
      etcdMembers: { listeners: ["http://10.1.0.1:2380", "http://10.1.0.1:2379"] },
      metrics: createProcessMetrics(),
    },
    { allowEgress: ["10.0.0.0/8", "203.0.113.0/24"], operatorEgress: [] },
  );
  onTestFinished(close);
  const own = [
    ["10.1.0.1", 2_380],
    ["10.1.0.1", 2_379],
    ["10.1.0.2", 5_432],
    ["10.2.0.1", 8_443],
    ["10.2.0.1", 8_444],
    ["10.3.0.1", 8_450],
    ["203.0.113.3", 8_450],
    ["10.4.0.1", 8_452],
  ] as const;
  const check = (host: string, port: number) => users.check({ host, port }, AbortSignal.timeout(5_000));
  for (const [host, port] of own)
    await expect(check(host, port), `${host} ${port}`).rejects.toMatchObject({ kind: "not allowed" });
  await expect(check("10.3.0.1", 443)).resolves.toBeUndefined();
  expect(ownListeners()).toEqual(
    expect.arrayContaining(["http://10.1.0.1:2380", "203.0.113.3:8450", "10.4.0.1:8452", "10.2.0.1:8443"]),
  );
  expect(ownListeners()).not.toContain("not a listener");
});
