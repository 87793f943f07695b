import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { getOption } from "@bufbuild/protobuf";
import type { AnyKind } from "@holdfast/controller/kernel/store/kind.ts";
import { defaultLimitMax, quotaField } from "@holdfast/controller/kernel/store/quota.ts";
import { field as fieldConstraints } from "@holdfast/proto/buf/validate/validate_pb.ts";
import { UpdateQuotaRequestSchema } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { expect, test } from "vitest";
import { organizationServices } from "@holdfast/testing/api/api-methods.ts";
import { mergeTables } from "@holdfast/testing/contract/contracts.ts";

const sources = join(import.meta.dirname, "../../controller/src");

/** Bound of each kind whose objects no quota counts: the counted thing that limits their number. */
const bounds = mergeTables(({ kindBounds }) => [kindBounds]);

async function kindsOfAll(): Promise<AnyKind[]> {
  const files = readdirSync(sources, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !/\.(?:test|contract)\.ts$/.test(file),
  );
  const modules: Readonly<Record<string, unknown>>[] = [];
  for (const file of files) if (!file.endsWith("main.ts")) modules.push(await import(join(sources, file)));
  return modules.flatMap((module) => Object.values(module).filter(isKind));
}

function isKind(value: unknown): value is AnyKind {
  return typeof value === "object" && value !== null && "deletedWithOrganization" in value && "quotas" in value;
}

test("every stored kind has a quota, or is bounded by a kind that has one", async () => {
  const kinds = await kindsOfAll();
  expect(kinds.length).toBeGreaterThan(20);
  const unbounded = kinds.filter(({ quotas }) => quotas.length === 0).map(({ name }) => name);
  expect([...new Set(unbounded)].sort()).toEqual(Object.keys(bounds).sort());
});

test("every quota of organizations has a row in limits.md, with its name and default", async () => {
  const quotas = (await kindsOfAll()).flatMap((kind) => kind.quotas).filter(({ ownerOf }) => ownerOf === undefined);
  const page = readFileSync(join(import.meta.dirname, "../../docs/reference/limits.md"), "utf8");
  const rows = page.split("\n").filter((line) => /^\| `[a-z_]+` \| /.test(line));
  const missing = quotas.filter((quota) => {
    const row = rows.find((line) => line.startsWith(`| \`${quotaField(quota)}\` | `));
    return row === undefined || !row.includes(` | ${quota.limit.toLocaleString("en")}`);
  });
  expect([...new Set(missing.map(quotaField))], "add their rows to docs/reference/limits.md, Quotas").toEqual([]);
});

test("the limits of the fields of UpdateQuota are those of the quotas", async () => {
  const quotas = (await kindsOfAll()).flatMap((kind) => kind.quotas);
  const bounds = UpdateQuotaRequestSchema.fields.flatMap((field) => {
    const rule = getOption(field, fieldConstraints).type;
    if (rule.case !== "int32" || rule.value.lessThan.case !== "lte") return [];
    const quota = quotas.find((each) => quotaField(each) === field.name);
    return [[field.name, rule.value.lessThan.value, quota && (quota.limitMax ?? defaultLimitMax)] as const];
  });
  expect(bounds.length).toBeGreaterThan(9);
  expect(bounds.filter(([, ofField, ofQuota]) => ofField !== ofQuota)).toEqual([]);
});

const methods = organizationServices.flatMap((service) => service.methods);
const makers = methods.filter(({ name }) => /^(?:Create|Add|Invite|Copy)/.test(name));

/** Kinds whose objects expire, or have another name in the API. */
const deletedOtherwise: Readonly<Record<string, string>> = {
  "rpc holdfast.v1.SessionService.CreateSessionCode": "a code is used once, and expires after a minute",
};

test("an object that a user can create, a user can delete", () => {
  expect(makers.length).toBeGreaterThan(8);
  const undeletable = makers.filter(({ name, parent }) => {
    const noun = name.replace(/^(?:Create|Add|Invite|Copy)/, "");
    return !parent.methods.some((each) => [`Delete${noun}`, `Remove${noun}`, `Revoke${noun}`].includes(each.name));
  });
  expect(undeletable.map(String)).toEqual(Object.keys(deletedOtherwise));
});
