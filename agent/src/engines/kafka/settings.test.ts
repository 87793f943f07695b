import { create } from "@bufbuild/protobuf";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { expect, test } from "vitest";
import { frontOf, frontsOf } from "./front.ts";
import { clusterIdOf } from "./layout.ts";
import { brokerSettings } from "./settings.ts";

const member = {
  nodeId: "01a2242d-4a7f-7661-aa85-c290a696a085",
  number: 1,
  hostname: "bus-1.private.local.holdfast.test",
  publicHostname: "bus-1.local.holdfast.test",
  address: "10.77.0.5",
};
const spec = create(InstanceSpecSchema, {
  serviceId: "service",
  nodeId: member.nodeId,
  engine: "kafka",
  version: "3.9",
  vcpu: 1,
  memoryBytes: 1n << 31n,
  address: member.address,
  port: 9092,
  allowedCidrs: ["203.0.113.0/24"],
  listeners: [
    { name: "engine", address: "10.77.0.5", port: 9092, audience: "private" },
    { name: "engine", address: "203.0.113.17", port: 9092, audience: "public" },
  ],
  peers: { clusterId: "cluster", secret: "a planted secret", members: [member] },
});
const paths = { data: "/data", config: "/config", tls: "/tls", run: "/run", software: "/usr", log: "/log" };
const settings = new Map(brokerSettings({ spec, paths }));

test("clients of each network get the name of the broker for their own network", () => {
  expect(settings.get("advertised.listeners")?.split(",").slice(0, 3)).toEqual([
    "PUBLIC://bus-1.local.holdfast.test:9092",
    "PRIVATE://bus-1.private.local.holdfast.test:9092",
    "PLAIN://bus-1.private.local.holdfast.test:9095",
  ]);
  const { listeners, backends } = frontOf({ spec, paths });
  expect(listeners.map(({ addresses, backend }) => [addresses.map(({ address }) => address), backend])).toEqual([
    [["203.0.113.17"], "public"],
    [["10.77.0.5"], "private"],
  ]);
  const ports = Object.values(backends).map((backend) => ("address" in backend ? backend.address.port : 0));
  expect(settings.get("listeners")).toContain(`PUBLIC://10.77.0.5:${ports[0]},PRIVATE://10.77.0.5:${ports[1]}`);
});

test("the private listener has a front only while it is enabled", () => {
  expect(frontsOf({ spec, paths }).map(({ name }) => name)).toEqual([undefined]);
  const listeners = [...spec.listeners, { ...spec.listeners[0]!, name: "private", port: 9095 }];
  const [, front] = frontsOf({ spec: { ...spec, listeners }, paths });
  expect(front?.listeners).toMatchObject([
    { mode: "pass", addresses: [{ address: "10.77.0.5", port: 9095 }], allows: { cidrs: ["203.0.113.0/24"] } },
  ]);
});

test("each port of the broker requires a certificate, and only the agent and the broker itself are superusers", () => {
  expect(settings.get("ssl.client.auth")).toBe("required");
  for (const listener of ["public", "private", "plain"])
    expect(settings.get(`listener.name.${listener}.ssl.client.auth`)).toBe("required");
  expect(settings.get("super.users")).toBe("User:holdfast-agent;User:holdfast-server");
  expect(settings.get("allow.everyone.if.no.acl.found")).toBe("false");
});

test("users' parameters come last, and none is one of the platform's settings", () => {
  const names = brokerSettings({ spec, paths }).map(([name]) => name);
  expect(new Set(names).size).toBe(names.length);
});

test("the id of a cluster is a UUID of Kafka that begins with a letter", () => {
  for (let at = 0; at < 100; at += 1) {
    const id = clusterIdOf({ spec: create(InstanceSpecSchema, { serviceId: `service-${at}` }) });
    expect(id).toMatch(/^[A-Za-z][\w-]{21}$/);
  }
});
