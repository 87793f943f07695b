import { expect, onTestFinished, test } from "vitest";
import { readyHost, testHostFacts } from "../../test/support/platform/ready-host.ts";
import { egressSystem } from "./egress-system.ts";
import { createProcessMetrics } from "./kernel/metrics/process-metrics.ts";

type Open = NonNullable<typeof egressSystem.open>;
type Parameter<Index extends 0 | 1> = Parameters<Open>[Index];

test("listeners that controllers, proxies, hosts and etcd report are refused here and by every data plane", async () => {
  const facts = { ...testHostFacts, listeners: ["10.3.0.1:8450", "not a listener", "203.0.113.3:8450"] };
  const hosts = new Map([["far", { object: readyHost("far", { address: "10.3.0.1:8450" }, {}, { facts }) }]]);
  const proxies = new Map([["proxy", { object: { status: { listeners: ["10.4.0.1:8452"] } } }]]);
  const kernel = {
    collections: { open: () => proxies },
    controllerRegistry: { controllers: () => [{ address: "10.2.0.1:8444", listeners: ["10.2.0.1:8443"] }] },
    etcdMembers: { listeners: ["http://10.1.0.1:2380", "http://10.1.0.1:2379"] },
    metrics: createProcessMetrics(),
  } as unknown as Parameter<0>;
  const fleet = { listeners: [], loopbackBlock: "127.99", machines: new Map(), hosts };
  const below = { listeners: ["postgresql://10.1.0.2/holdfast"], ownAddresses: [], fleet } as unknown as Parameter<1>;
  const settings = { allowEgress: ["10.0.0.0/8", "203.0.113.0/24"], operatorEgress: [] } as never;
  const { gives, close } = await (egressSystem.open as Open)(kernel, below, settings);
  onTestFinished(async () => close?.());
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
  const check = (host: string, port: number) => gives?.egress.users.check({ host, port }, AbortSignal.timeout(5_000));
  for (const [host, port] of own)
    await expect(check(host, port), `${host} ${port}`).rejects.toMatchObject({ kind: "not allowed" });
  await expect(check("10.3.0.1", 443)).resolves.toBeUndefined();
  expect(gives?.ownListeners()).toEqual(
    expect.arrayContaining(["http://10.1.0.1:2380", "203.0.113.3:8450", "10.4.0.1:8452", "10.2.0.1:8443"]),
  );
  expect(gives?.ownListeners()).not.toContain("not a listener");
});
