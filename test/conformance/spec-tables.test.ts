import { defaultCatalog } from "@holdfast/controller/catalog/catalog.ts";
import { managedServiceLifecycle } from "@holdfast/controller/services/service/managed-service-lifecycle.ts";
import { stuckAfterMs } from "@holdfast/controller/operation/operation.ts";
import { DatabaseUserSchema } from "@holdfast/proto/holdfast/v1/database_user_pb.ts";
import {
  ManagedServiceSchema,
  ManagedServiceStatusSchema,
  NodeRoleSchema,
  NodeSchema,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import type { DescEnum, DescMessage } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { restMethods } from "@holdfast/testing/api/api-methods.ts";

const spelledOf = ({ values }: DescEnum) =>
  values.filter(({ number }) => number !== 0).map(({ jsonName, name }) => jsonName ?? name);
const fieldsOf = ({ fields }: DescMessage) => fields.map(({ name }) => name);

// Section names are from the first specification document, Managed Database Service.
describe("the specification's tables", () => {
  it("Managed service: every field is in the record", () => {
    const fields = [
      "id",
      "name",
      "status",
      "created_at",
      "allowed_cidrs",
      "plan_name",
      "storage_size_gb",
      "zone",
      "database_type",
    ];
    expect(fieldsOf(ManagedServiceSchema)).toEqual(expect.arrayContaining(fields));
  });

  it("Node: id, role and its own host name", () => {
    expect(fieldsOf(NodeSchema)).toEqual(expect.arrayContaining(["id", "role", "hostname"]));
    expect(spelledOf(NodeRoleSchema)).toEqual(["primary", "replica"]);
  });

  it("Database user: username and role", () => {
    expect(fieldsOf(DatabaseUserSchema)).toEqual(expect.arrayContaining(["username", "role"]));
  });

  it("Compute plans", () => {
    expect(defaultCatalog.plans.map(({ planName, vcpu, memoryGb }) => [planName, vcpu, memoryGb])).toEqual([
      ["tier-1", 1, 2],
      ["tier-2", 2, 4],
      ["tier-4", 4, 8],
      ["tier-8", 8, 16],
      ["tier-16", 16, 32],
    ]);
  });

  it("Storage tiers", () => {
    const tiers = defaultCatalog.storageTiers.map(({ storageTier, medium, use }) => [storageTier, medium, use]);
    expect(tiers.sort()).toEqual([
      ["maxiops", "NVMe SSD", "production databases"],
      ["standard", "HDD", "archival, low I/O"],
    ]);
  });

  it("States: the status is only ever one of the six", () => {
    expect(spelledOf(ManagedServiceStatusSchema)).toEqual([
      "Pending",
      "Provisioning",
      "Running",
      "Stopped",
      "Error",
      "Upgrading",
    ]);
  });

  it("States and transitions: stop changes Running to Stopped; provisioning ends in Running or Error", () => {
    const moves = managedServiceLifecycle.rows.map(([from, , to]) => `${from} ${to}`);
    expect(moves).toEqual(
      expect.arrayContaining(["Pending Provisioning", "Provisioning Running", "Provisioning Error", "Running Stopped"]),
    );
  });

  it("Limits: time to live, and when provisioning counts as stuck", () => {
    expect(defaultCatalog.limits).toMatchObject({ ttlHoursMin: 1, ttlHoursMax: 720 });
    expect(stuckAfterMs).toBe(10 * 60_000);
  });

  it.each([
    ["GET", "/managed-services/{}"],
    ["PATCH", "/managed-services/{}"],
    ["POST", "/managed-services/{}/stop"],
    ["POST", "/managed-services/{}/start"],
    ["DELETE", "/managed-services/{}"],
    ["POST", "/managed-services/{}/database-users"],
    ["POST", "/managed-services/{}/database-users/{}/reveal-password"],
    ["PATCH", "/managed-services/{}/configuration"],
  ])("Endpoints: %s %s", (verb, path) => {
    const served = restMethods.map((method) => `${method.verb} ${method.path.replaceAll(/\{\w+\}/g, "{}")}`);
    expect(served).toContain(`${verb} ${path}`);
  });
});
