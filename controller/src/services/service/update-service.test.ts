import { create } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { UpdateManagedServiceRequestSchema } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { poolerMessage, requirePooler } from "./pooler.ts";
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

function change(...input: Parameters<typeof request>) {
  return updateService(service, request(...input), 1_000);
}

test("networks are stored in canonical form, and machines must take them", () => {
  const { after } = change({ allowedCidrs: { values: ["192.0.2.9/24", "::1"] } }, ["allowed_cidrs"]);
  expect(after.spec.allowedCidrs).toEqual(["192.0.2.0/24", "::1/128"]);
  expect(after.spec.instanceGeneration).toBe(8);
  expect(after.metadata.generation).toBe(4);
});

test("an empty list admits no client", () => {
  expect(change({ allowedCidrs: { values: [] } }, ["allowed_cidrs"]).after.spec.allowedCidrs).toEqual([]);
});

test("fields that machines do not use leave them alone", () => {
  const { after } = change({ tags: { b: "2" }, deletionProtection: true }, ["tags", "deletion_protection"]);
  expect(after.spec).toMatchObject({ tags: { b: "2" }, deletionProtection: true, instanceGeneration: 7 });
});

test("a time to live counts from this request and resets its warnings; null ends it", () => {
  expect(change({ ttlHours: 2 }, ["ttl_hours"]).after).toMatchObject({
    spec: { expiresAt: 7_201_000 },
    status: { expiryWarnings: [] },
  });
  expect(change({}, ["ttl_hours"]).after.spec).toMatchObject({ ttlHours: null, expiresAt: null });
});

test("a new name is claimed, and the hostname does not change", () => {
  const { after, rename } = change({ name: "other" }, ["name"]);
  expect(rename).toEqual({ from: "db", to: "other" });
  expect(after.metadata.name).toBe("other");
});

test("a request that changes nothing gives the same object back", () => {
  expect(change({ name: "db", tags: { a: "1" } }, ["name", "tags"]).after).toBe(service);
});

test("a pooler runs on machines, retains fields that a request omits, and is off by default", () => {
  const { after } = change({ pooler: { enabled: true } }, ["pooler"]);
  expect(after.spec).toMatchObject({ pooler: { enabled: true, mode: "transaction" }, instanceGeneration: 8 });
  const other = updateService(after, request({ pooler: { mode: "session" } }, ["pooler"]), 2_000).after;
  expect(other.spec).toMatchObject({ pooler: { enabled: true, mode: "session" }, instanceGeneration: 9 });
  expect(updateService(other, request({ pooler: { enabled: true } }, ["pooler"]), 2_000).after).toBe(other);
  expect(change({ pooler: { enabled: false } }, ["pooler"]).after.spec.instanceGeneration).toBe(7);
});

test("an engine without a pooler cannot have one", () => {
  const valkey = { ...service, spec: { ...service.spec, databaseType: "valkey" } };
  const update = () => updateService(valkey, request({ pooler: { enabled: true } }, ["pooler"]), 1_000);
  expect(update).toThrow(expect.objectContaining({ key: "INVALID_REQUEST" }));
});

test("a pooler without modes is enabled without one, and a requested mode is refused by its field", () => {
  const mysql = { ...service, spec: { ...service.spec, databaseType: "mysql" } };
  const update = (pooler: object) => updateService(mysql, request({ pooler }, ["pooler"]), 1_000);
  const { spec } = update({ enabled: true }).after;
  expect(spec).toMatchObject({ pooler: { enabled: true } });
  expect(poolerMessage(spec)).toEqual({ enabled: true });
  for (const mode of ["transaction", "session"])
    expect(() => update({ enabled: true, mode })).toThrow(
      expect.objectContaining({ errors: [expect.objectContaining({ field: "pooler.mode", code: "not_supported" })] }),
    );
});

test("a pooler waits for an image that has one", () => {
  const { after } = change({ pooler: { enabled: true } }, ["pooler"]);
  const reported = (offersPooler: boolean) => () => create(InstanceObservationSchema, { offersPooler });
  expect(() => requirePooler(service.spec, after.spec, reported(false))).toThrow(/image/);
  requirePooler(service.spec, after.spec, reported(true));
  requirePooler(service.spec, after.spec, () => undefined);
  // A service with a pooler retains it under any image.
  requirePooler(after.spec, after.spec, reported(false));
});

test.each([
  ["an empty mask", {}, [], "update_mask"],
  ["an unknown field", {}, ["zone"], "update_mask"],
])("%s is refused with its field", (_, fields, paths, field) => {
  expect(() => change(fields, paths)).toThrow(
    expect.objectContaining({ errors: [expect.objectContaining({ field })] }),
  );
});

test("a reserved name and invalid networks are reported together", () => {
  const fields = { name: "catalog", allowedCidrs: { values: ["10.0.0.0/8", "nope"] } };
  const faults = updateServiceFaults(request(fields, ["name", "allowed_cidrs"]));
  expect(faults.map(({ field }) => field)).toEqual(["name", "allowed_cidrs[1]"]);
});
