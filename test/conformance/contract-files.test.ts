import { create, createFileRegistry, type DescMethod } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { organizationServices, platformServices } from "@holdfast/testing/api/api-methods.ts";
import { caseOf } from "@holdfast/testing/contract/authorization-cases.ts";
import type { Contract } from "@holdfast/testing/contract/contract.ts";
import { contractFileOf, contracts, mergeTables } from "@holdfast/testing/contract/contracts.ts";

const methods = [...organizationServices, ...platformServices].flatMap((service) => service.methods);
const methodOf = (name: string): DescMethod => {
  const found = methods.find((method) => `${method.parent.typeName}.${method.name}` === name);
  if (found === undefined) throw new Error(`there is no ${name}`);
  return found;
};

test.each([
  ["holdfast.v1.AppService.CreateAppDomain", "controller/src/app/app/domain.conformance.ts"],
  ["holdfast.v1.OrganizationService.AddMember", "controller/src/access/organization/member.conformance.ts"],
  ["holdfast.v1.InferenceService.GetInferenceUsage", "controller/src/inference/usage/usage.conformance.ts"],
  ["holdfast.v1.AuditService.ListAuditLog", "controller/src/access/audit/audit-log.conformance.ts"],
  ["holdfast.admin.v1.BackupService.ListExpiry", "controller/src/services/backup/backup-admin.conformance.ts"],
])("the case of %s belongs beside its handler", (name, path) => {
  expect(contractFileOf(methodOf(name))).toBe(path);
});

test("each case is in the file that an error about a missing case would name", () => {
  const misplaced = [...contracts].flatMap(([path, { authorization = [] }]) =>
    authorization
      .flatMap((cases) => Object.keys(cases))
      .filter((name) => contractFileOf(methodOf(name)) !== path)
      .map((name) => `${name} is in ${path}, not in ${contractFileOf(methodOf(name))}`),
  );
  expect(misplaced).toEqual([]);
});

test("a method without a case is refused with the file for it", () => {
  const file = create(FileDescriptorProtoSchema, {
    name: "holdfast/v1/app.proto",
    package: "holdfast.v1",
    messageType: [{ name: "A" }],
    service: [
      { name: "AppService", method: [{ name: "Vanish", inputType: ".holdfast.v1.A", outputType: ".holdfast.v1.A" }] },
    ],
  });
  const method = createFileRegistry(file, () => undefined).getService("holdfast.v1.AppService")?.methods[0];
  expect(() => caseOf(method as DescMethod)).toThrow(
    "holdfast.v1.AppService.Vanish has no authorization case: controller/src/app/app/app.conformance.ts",
  );
});

test("an entry in two contracts is refused", () => {
  const two = new Map<string, Contract>([
    ["a.conformance.ts", { kindBounds: { note: "one an organization" } }],
    ["b.conformance.ts", { kindBounds: { note: "two an organization" } }],
  ]);
  expect(() => mergeTables(({ kindBounds }) => [kindBounds], two)).toThrow(
    "note is in a.conformance.ts and in b.conformance.ts; remove one of them",
  );
});
