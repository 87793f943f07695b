import { ManagedServiceService } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { expect, test } from "vitest";
import { compileInput, parseBody } from "./input.ts";
import { createDecoders } from "./json/decode.ts";
import { createFaults } from "./json/faults.ts";
import { describeMethods } from "./method.ts";
import { createValidation } from "./validation.ts";

const handlers = Object.fromEntries(
  ManagedServiceService.methods.map(({ localName }) => [localName, async () => ({})]),
);
const methods = describeMethods([{ service: ManagedServiceService, handlers, checks: {} }]);
const creation = methods.find(({ description }) => description.name === "CreateManagedService");
if (creation?.rest === undefined) throw new Error("services cannot be created");
const build = compileInput(creation, creation.rest, createDecoders(), createValidation());

test.each([
  ["a zero", 0, "must be greater than or equal to 1 and less than or equal to 16384"],
  ["a negative number", -1, "must be greater than or equal to 1 and less than or equal to 16384"],
  ["null", null, "must not be null"],
  ["nothing", undefined, "is required"],
])("%s as a required number has a fault that says what it is to be", (_, size, detail) => {
  const faults = createFaults();
  const body = { name: "orders", database_type: "postgresql", plan_name: "tier-1", storage_size_gb: size };
  build([], "", parseBody(Buffer.from(JSON.stringify(body))), faults);
  expect(faults.list.map((fault) => `${fault.field} ${fault.detail}`)).toEqual([`storage_size_gb ${detail}`]);
});

test.each([
  ["an empty string", "", "must not be empty", "string_min_len"],
  ["nothing", undefined, "is required", "required"],
])("%s as a required string has a fault that says what it is to be", (_, plan, detail, code) => {
  const faults = createFaults();
  const body = { name: "orders", database_type: "postgresql", plan_name: plan, storage_size_gb: 1 };
  build([], "", parseBody(Buffer.from(JSON.stringify(body))), faults);
  expect(faults.list).toMatchObject([{ field: "plan_name", detail, code }]);
});
