import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { describe, expect, test } from "vitest";
import { managedServiceMessage } from "./managed-service-message.ts";

test.each([
  ["postgresql", "7b0f3a9e-0000-7000-8000-000000000001", "7b0f3a9e-0000-7000-8000-000000000001"],
  ["kafka", "", undefined],
])("a service of %s with primary %j has primary_node_id %j", (databaseType, primaryNodeId, expected) => {
  const service = runningService({}, { databaseType }, { primaryNodeId });
  expect(managedServiceMessage(service, undefined).primaryNodeId).toBe(expected);
});

describe("a service of three members", () => {
  const nodes = [1, 2, 3].map((number) => ({
    id: `node-${number}`,
    role: "replica" as const,
    hostname: `bus-${number}.local`,
    zone: "local",
    number,
  }));
  const message = (databaseType: string, quorum: "healthy" | "degraded" | "unhealthy", change: object = {}) => {
    const checks = [{ name: "quorum", nodeId: "node-1", status: quorum, since: 0, reason: "" }];
    const health = { status: "healthy" as const, since: 0, reason: "", checks };
    const members = nodes.map((node) => (node.number === 3 ? { ...node, ...change } : node));
    return managedServiceMessage(runningService({}, { databaseType, nodes: members }, { health }), undefined);
  };

  test.each([
    ["healthy", true],
    ["degraded", true],
    ["unhealthy", false],
  ] as const)("that elect their leader has a quorum and no replication; its check is %s", (status, healthy) => {
    const { quorum, replication } = message("kafka", status);
    expect(quorum).toMatchObject({ healthy, members: 3, majority: 2 });
    expect(replication).toBeUndefined();
  });

  test("counts no member that still joins", () => {
    expect(message("kafka", "healthy", { joining: true }).quorum).toMatchObject({ members: 2, majority: 2 });
  });

  test("with a primary has replication and no quorum", () => {
    const { quorum, replication } = message("postgresql", "healthy");
    expect(quorum).toBeUndefined();
    expect(replication).toMatchObject({ mode: "async" });
  });
});
