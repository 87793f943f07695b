import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { AnyKind } from "@holdfast/controller/kernel/store/kind.ts";
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
