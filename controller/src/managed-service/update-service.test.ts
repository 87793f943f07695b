import { create } from "@bufbuild/protobuf";
import { UpdateManagedServiceRequestSchema } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { expect, test } from "vitest";
import { runningService } from "../../../test/support/service-object.ts";
import { updateService, updateServiceFaults } from "./update-service.ts";

const service = runningService(
  { id: "s", name: "db", organizationId: "o", generation: 3 },
  { allowedCidrs: ["10.0.0.0/8"], ttlHours: 5, expiresAt: 18_000_000, tags: { a: "1" }, instanceGeneration: 7 },
  { expiryWarnings: [24] },
);

function request(
  fields: Omit<Parameters<typeof create<typeof UpdateManagedServiceRequestSchema>>[1], "$typeName">,
  paths: string[],
) {
  return create(UpdateManagedServiceRequestSchema, { ...fields, id: "s", updateMask: { paths } });
}

function change(...given: Parameters<typeof request>) {
  return updateService(service, request(...given), 1_000);
}

test("networks are stored in canonical form, and machines must take them", () => {
  const { after } = change({ allowedCidrs: { values: ["192.0.2.9/24", "::1"] } }, ["allowed_cidrs"]);
  expect(after.spec.allowedCidrs).toEqual(["192.0.2.0/24", "::1/128"]);
  expect(after.spec.instanceGeneration).toBe(8);
  expect(after.metadata.generation).toBe(4);
});

test("an empty list lets nobody in", () => {
  expect(change({ allowedCidrs: { values: [] } }, ["allowed_cidrs"]).after.spec.allowedCidrs).toEqual([]);
});

test("what machines need not know leaves them alone", () => {
  const { after } = change({ tags: { b: "2" }, deletionProtection: true }, ["tags", "deletion_protection"]);
  expect(after.spec).toMatchObject({ tags: { b: "2" }, deletionProtection: true, instanceGeneration: 7 });
});

test("a time to live counts from this request, and its warnings begin anew; null ends it", () => {
  expect(change({ ttlHours: 2 }, ["ttl_hours"]).after).toMatchObject({
    spec: { expiresAt: 7_201_000 },
    status: { expiryWarnings: [] },
  });
  expect(change({}, ["ttl_hours"]).after.spec).toMatchObject({ ttlHours: null, expiresAt: null });
});

test("a new name is claimed, the hostname stays", () => {
  const { after, rename } = change({ name: "other" }, ["name"]);
  expect(rename).toEqual({ from: "db", to: "other" });
  expect(after.metadata.name).toBe("other");
});

test("a request that changes nothing gives the same object back", () => {
  expect(change({ name: "db", tags: { a: "1" } }, ["name", "tags"]).after).toBe(service);
});

test.each([
  ["an empty mask", {}, [], "update_mask"],
  ["an unknown field", {}, ["plan_name"], "update_mask"],
])("%s is refused with its field", (_, fields, paths, field) => {
  expect(() => change(fields, paths)).toThrow(
    expect.objectContaining({ errors: [expect.objectContaining({ field })] }),
  );
});

test("a reserved name and bad networks are told together", () => {
  const fields = { name: "catalog", allowedCidrs: { values: ["10.0.0.0/8", "nope"] } };
  const faults = updateServiceFaults(request(fields, ["name", "allowed_cidrs"]));
  expect(faults.map(({ field }) => field)).toEqual(["name", "allowed_cidrs[1]"]);
});
