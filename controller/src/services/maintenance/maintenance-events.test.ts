import { expect, test } from "vitest";
import { type DataSnapshot, failed, type OperationObject } from "#operation/operation.ts";
import { type ManagedServiceObject, serviceSubject } from "../service/managed-service.ts";
import { endedEvent } from "./maintenance-events.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { serviceOperations } from "../service/service-operations.ts";

const now = 1_000_000;
const ended = failed(
  newOperation({
    id: "op-1",
    subject: serviceSubject("s"),
    organizationId: "o",
    type: serviceOperations.maintenance,
    now,
    work: { updates: ["trixie-2"], automatic: true, image: null },
  }),
  { code: "rolled_back_engine_failed", message: "It ended." },
  now,
);
const snapshotOf = (outcome: DataSnapshot["outcome"]): OperationObject["status"] => ({
  ...ended.status,
  rollback: { code: "engine_failed", message: "It ended." },
  outcome: { snapshot: { outcome, reason: "" } },
});
const serviceIn = (state: "Running" | "Error") =>
  ({ metadata: { id: "s", name: "orders" }, spec: {}, status: { state, error: null } }) as ManagedServiceObject;

// biome-ignore format: a table, aligned so that it reads as one
test.each<[string, OperationObject["status"], "Running" | "Error", { rolled_back: boolean; data_restored: boolean }]>([
  ["the data that went back with the image",             snapshotOf("restored"), "Running", { rolled_back: true,  data_restored: true }],
  ["the data that stayed beside their snapshot",         snapshotOf("taken"),    "Running", { rolled_back: true,  data_restored: false }],
  ["the data that had none",                             snapshotOf("none"),     "Running", { rolled_back: true,  data_restored: false }],
  ["the data that went back and helped no engine",       snapshotOf("restored"), "Error",   { rolled_back: false, data_restored: true }],
  ["updates that failed before anything was rolled back", ended.status,           "Error",   { rolled_back: false, data_restored: false }],
])("an event of failed maintenance has %s", (_name, status, state, reported) => {
  const event = endedEvent(serviceIn(state), { ...ended, status });
  expect(event?.type).toBe("service.maintenance_failed");
  expect(event?.data).toMatchObject({ ...reported, update_ids: ["trixie-2"], error_message: "It ended." });
});
