import type { Connection } from "@holdfast/sdk/responses.ts";
import { expect, test } from "vitest";
import { routed } from "./engine-client.ts";

const connection = { host: "bus", port: 1, nodes: [], pooled_uri: null } as Partial<Connection> as Connection;

test.each([
  ["postgresql://app_user@replica-orders:5432/defaultdb", "replica-orders"],
  ["rediss://app_user@replica-cache:6379", "replica-cache"],
])("the replica of %s is %s", (uri, host) => {
  expect(routed({ ...connection, replica_uri: uri }, { replica: true })).toMatchObject({ host });
});

// Kafka's was a host and a port in an earlier release, and a client would have connected to its own host.
test.each(["", "replica-bus-x7k2.local.holdfast.test:9092"])("a service without replicas is refused: %j", (uri) => {
  expect(() => routed({ ...connection, replica_uri: uri }, { replica: true })).toThrow("no replicas");
});
