import { DatabaseUserDeletionSchema } from "@holdfast/proto/holdfast/v1/database_user_pb.ts";
import { EventSchema } from "@holdfast/proto/holdfast/v1/event_pb.ts";
import { StackMigrationSchema } from "@holdfast/proto/holdfast/v1/stack_pb.ts";
import { expect, test } from "vitest";
import { faultsOfResponse } from "./response-shape.ts";

const id = "0192a7c4-8d1e-7f30-9b52-1c6e0f4a8d33";

test.each([
  [id, []],
  ["", ['$.service_id is "", no UUID']],
  ["orders", ['$.service_id is "orders", no UUID']],
  [null, ["$.service_id is null"]],
])("an id is a UUID: %j", (serviceId, faults) => {
  const deletion = { service_id: serviceId, username: "app", operation: null };
  expect(faultsOfResponse(DatabaseUserDeletionSchema, deletion)).toEqual(faults);
});

test("an optional id is null, never empty", () => {
  expect(faultsOfResponse(StackMigrationSchema, { id: "" })).toContain('$.id is "", no UUID');
  expect(faultsOfResponse(StackMigrationSchema, { id: null }).join()).not.toContain("$.id ");
});

test("ids in the data of an event are not empty", () => {
  const faults = faultsOfResponse(EventSchema, { data: { service_id: "", from_node_id: id, name: "", app_id: null } });
  expect(faults.filter((fault) => fault.startsWith("$.data"))).toEqual(['$.data.service_id is "", no id']);
});
