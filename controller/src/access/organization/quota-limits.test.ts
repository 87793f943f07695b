import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { type UpdateQuotaRequest, UpdateQuotaRequestSchema } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import type { Organization } from "./organization.ts";
import { quotaFigures, updatedLimits } from "./quota-limits.ts";

const quotas = {
  all: () => [{ name: "services" }, { name: "storageGb", limitMax: 1_000_000 }, { name: "inferenceKeys" }],
  usage: () => ({ services: 3, storageGb: 30, inferenceKeys: 0 }),
  limits: () => ({ services: 100, storageGb: 200, inferenceKeys: 1_000 }),
};

interface Update {
  readonly limits?: Record<string, number>;
  readonly defaults?: string[];
  readonly mask?: string[];
  readonly services?: number;
}

function requestOf({ mask = [], ...fields }: Update): UpdateQuotaRequest {
  const maps = (["limits", "defaults"] as const).filter((name) => fields[name] !== undefined);
  return create(UpdateQuotaRequestSchema, {
    ...fields,
    updateMask: create(FieldMaskSchema, { paths: [...mask, ...maps] }),
  });
}

const before = { services: 7, inferenceKeys: 5 };

// biome-ignore format: a table, aligned so that it reads as one
test.each<[string, Update, Record<string, number>]>([
  ["a limit by its name",             { limits: { storage_gb: 9 } },                          { ...before, storageGb: 9 }],
  ["a limit of 0",                    { limits: { inference_keys: 0 } },                      { services: 7, inferenceKeys: 0 }],
  ["the largest limit of a quota",    { limits: { storage_gb: 1_000_000 } },                  { ...before, storageGb: 1_000_000 }],
  ["a reset by its name",             { defaults: ["inference_keys"] },                       { services: 7 }],
  ["a field that the mask names",     { services: 8, mask: ["services"] },                    { services: 8, inferenceKeys: 5 }],
  ["a named field without a value",   { mask: ["services"] },                                 { inferenceKeys: 5 }],
  ["a field that no mask names",      { services: 8 },                                        before],
  ["both kinds",                      { services: 8, mask: ["services"], limits: { inference_keys: 6 } }, { services: 8, inferenceKeys: 6 }],
])("%s changes the limits", (_, update, after) => {
  expect(updatedLimits(quotas, before, requestOf(update))).toEqual(after);
});

// biome-ignore format: a table, aligned so that it reads as one
test.each<[string, Update, string]>([
  ["a name that is no quota",    { limits: { disks: 1 } },        "limits.disks: names disks, which is not a quota; the quotas are services, storage_gb, inference_keys"],
  ["the stored name",            { limits: { storageGb: 1 } },    "limits.storageGb: names storageGb, which is not a quota"],
  ["a name of every object",     { defaults: ["constructor"] },   "defaults[0]: names constructor, which is not a quota"],
  ["a reset of no quota",        { defaults: ["services", "x"] }, "defaults[1]: names x, which is not a quota"],
  ["a limit above the largest",  { limits: { services: 100_001 } }, "limits.services: must be at most 100000"],
  ["a quota named twice",        { limits: { services: 1 }, defaults: ["services"] }, "defaults[0]: names services twice"],
  ["a mask with another field",  { mask: ["organization_id"] },   "update_mask: names organization_id, which is not a quota"],
  ["a mask with a quota without a field", { mask: ["inference_keys"] }, "update_mask: names inference_keys, which is set in limits"],
])("%s is refused", (_, update, text) => {
  expect(() => updatedLimits(quotas, before, requestOf(update))).toThrow(text);
});

test("limits that the mask does not name are ignored", () => {
  const request = { ...requestOf({ services: 8, mask: ["services"] }), limits: { storage_gb: 9 }, defaults: ["x"] };
  expect(updatedLimits(quotas, before, request)).toEqual({ services: 8, inferenceKeys: 5 });
});

test("each quota has its limit and usage by the name in the API", () => {
  expect(quotaFigures(quotas, partial<Organization>({ metadata: { id: "o" } }))).toEqual({
    services: { limit: 100, used: 3 },
    storage_gb: { limit: 200, used: 30 },
    inference_keys: { limit: 1_000, used: 0 },
  });
});
