import { expect, test } from "vitest";
import { catalogWith, defaultCatalog, planOf, withVirtualMachines } from "./catalog.ts";
import { chooseFromCatalog } from "./catalog-choice.ts";
import { createEngineOffers } from "./engine-offer.ts";

const engines = createEngineOffers([
  { engine: "postgresql", version: "17", available: true },
  { engine: "postgresql", version: "18", available: false, reason: "no image" },
] as never);
const requested = { databaseType: "postgresql", planName: "tier-1", storageSizeGb: 1, parameters: {} };
const choose = (more: object) => chooseFromCatalog({ ...requested, ...more }, defaultCatalog, engines);

test("omitted fields have the catalog's defaults", () => {
  expect(choose({ parameters: { work_mem: "8MB" } })).toMatchObject({
    version: "17",
    storageTier: "maxiops",
    zone: "local",
    faults: [],
  });
});

test.each([
  [{ planName: "dev" }, ["plan_name"]],
  [{ version: "18" }, ["version"]],
  [{ version: "9", parameters: { work_mem: "8MB" } }, ["version"]],
  [{ databaseType: "oracle", version: "9", parameters: { a: "b" } }, ["database_type"]],
  [{ zone: "mars", storageTier: "tape", planName: "" }, ["plan_name", "storage_tier", "zone"]],
  [{ parameters: { work_mem: "much", no_such: "1" } }, ["parameters.work_mem", "parameters.no_such"]],
  [
    { parameters: { max_connections: "10000", min_wal_size: "1GB" } },
    ["parameters.max_connections", "parameters.min_wal_size"],
  ],
  [{ zone: "mars", parameters: { "a.b/c": "1" } }, ["zone", 'parameters["a.b/c"]']],
])("%j is told in all of its faults", (more, fields) => {
  expect(choose(more).faults.map(({ field }) => field)).toEqual(fields);
});

test("an unavailable tier is unknown, and the default is the first available one", () => {
  const catalog = catalogWith(defaultCatalog, ["standard"]);
  const requested = { databaseType: "postgresql", planName: "tier-1", storageSizeGb: 1, parameters: {} };
  expect(chooseFromCatalog(requested, catalog, engines)).toMatchObject({ storageTier: "standard", faults: [] });
  const { faults } = chooseFromCatalog({ ...requested, storageTier: "maxiops" }, catalog, engines);
  expect(faults).toEqual([
    { field: "storage_tier", pointer: "/storage_tier", code: "unknown", detail: "must be one of standard" },
  ]);
  expect(() => catalogWith(defaultCatalog, ["tape"])).toThrow("tape is not one of maxiops, standard");
});

test("the pointer to a parameter with a dot in its name has one segment", () => {
  expect(choose({ parameters: { "a.b/c": "1" } }).faults[0]?.pointer).toBe("/parameters/a.b~1c");
});

test("plans that an operator names are also offered as virtual machines", () => {
  const catalog = withVirtualMachines(defaultCatalog, ["tier-4"]);
  expect(catalog.plans).toHaveLength(defaultCatalog.plans.length + 1);
  expect(catalog.plans.at(-1)).toMatchObject({ planName: "tier-4-vm", vcpu: 4, memoryGb: 8, kind: "virtual_machine" });
  expect(() => withVirtualMachines(defaultCatalog, ["tier-5"])).toThrow(
    "HOLDFAST_VM_PLANS: tier-5 is not one of tier-1",
  );
});

test("a withdrawn plan cannot be chosen, but its services retain it", () => {
  const offered = withVirtualMachines(defaultCatalog, ["tier-4"]);
  expect(chooseFromCatalog({ ...requested, planName: "tier-4-vm" }, offered, engines).faults).toEqual([]);
  expect(chooseFromCatalog({ ...requested, planName: "tier-4-vm" }, defaultCatalog, engines).faults).toMatchObject([
    { field: "plan_name", code: "unknown" },
  ]);
  expect(planOf(defaultCatalog, "tier-4-vm")).toEqual(planOf(offered, "tier-4-vm"));
  expect(() => planOf(defaultCatalog, "tier-4-vm-vm")).toThrow("no plan tier-4-vm-vm");
});
