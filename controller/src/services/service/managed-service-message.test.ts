import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { expect, test } from "vitest";
import { managedServiceMessage } from "./managed-service-message.ts";

test.each([
  ["postgresql", "7b0f3a9e-0000-7000-8000-000000000001", "7b0f3a9e-0000-7000-8000-000000000001"],
  ["kafka", "", undefined],
])("a service of %s with primary %j has primary_node_id %j", (databaseType, primaryNodeId, expected) => {
  const service = runningService({}, { databaseType }, { primaryNodeId });
  expect(managedServiceMessage(service, undefined).primaryNodeId).toBe(expected);
});
