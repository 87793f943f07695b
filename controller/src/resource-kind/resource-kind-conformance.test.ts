import { randomBytes } from "node:crypto";
import { systemClock as clock } from "@holdfast/common/clock.ts";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fixtureKind } from "../../../test/support/composition/fixture-kind.ts";
import { createCollections } from "../../../test/support/controller/test-collections.ts";
import { startTestStore, type TestStore } from "../../../test/support/controller/test-store.ts";
import { defaultCatalog } from "#catalog/catalog.ts";
import { createEngineOffers } from "#catalog/engine-offers.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { engineCatalog } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { createDatabaseKind } from "./database-kind.ts";
import type { ResourceKind, ResourceSpec } from "./resource-kind.ts";

// What every kind of resource owes to whoever composes resources.

const unused = () => {
  throw new Error("no resource is made here");
};

let store: TestStore;
let collections: ReturnType<typeof createCollections>;
let database: ResourceKind;

beforeAll(async () => {
  store = await startTestStore();
  collections = createCollections(store.store);
  await collections.ready;
  const images = engineCatalog.flatMap(({ engine, versions }) =>
    versions.map((version) => ({ engine, version, available: true, image: "image" }) as never),
  );
  database = createDatabaseKind({
    ...collections,
    creation: { add: unused },
    catalog: defaultCatalog,
    engines: () => createEngineOffers(images),
    sealer: createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) }),
    clock,
    newId: unused,
    quotas: { claim: unused },
    fleet: { observation: () => undefined },
    machines: collections.machines,
    hosts: collections.hosts,
  } as never);
});
afterAll(async () => {
  collections?.close();
  await store?.close();
});

const written: Readonly<Record<string, readonly [good: readonly ResourceSpec[], bad: readonly ResourceSpec[]]>> = {
  database: [
    [
      { database_type: "postgresql" },
      { database_type: "valkey", plan: "tier-2", storage_gb: 3, allowed_cidrs: ["10.0.0.0/8"], tags: { a: "b" } },
    ],
    [
      {},
      { database_type: "postgresql", plan: "tier-1", plan_name: "tier-1" },
      { database_type: "postgresql", storage_gb: 0 },
      { database_type: "postgresql", disk: 1 },
    ],
  ],
  fixture: [[{}, { image: "a", env: { KEY: "v" } }], [{ more: 1 }]],
};

describe.each(["database", "fixture"])("the kind %s", (name) => {
  const kind = () => (name === "database" ? database : fixtureKind);
  const [good, bad] = written[name] ?? [[], []];

  test("publishes a schema that takes what can be and refuses what cannot", () => {
    const validate = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false }).compile(
      kind().schema({}),
    );
    expect(good.map((spec) => validate(spec))).toEqual(good.map(() => true));
    expect(bad.map((spec) => validate(spec))).toEqual(bad.map(() => false));
    for (const implied of Object.values(kind().aliases))
      new Ajv2020({ strictTypes: false, strictRequired: false }).compile(kind().schema(implied));
  });

  test("has one form of a spec, that differs from itself in nothing and costs whole cents", () => {
    for (const spec of good) {
      const normalized = kind().normalize(spec);
      expect(kind().normalize(normalized)).toEqual(normalized);
      expect(kind().diff(normalized, normalized)).toEqual({ change: "unchanged" });
      expect(kind().faults(normalized)).toEqual([]);
      expect(kind().unavailable(normalized)).toBeUndefined();
      for (const { cents } of kind().monthlyCost(normalized)) expect(Number.isInteger(cents) && cents >= 0).toBe(true);
      for (const amount of Object.values(kind().quotaOf(normalized))) expect(amount).toBeGreaterThan(0);
    }
  });
});

test("a database changes its plan in place, and everything else is recorded alone", () => {
  const before = database.normalize({ database_type: "postgresql" });
  const to = (change: ResourceSpec) => database.diff(before, { ...before, ...change });
  expect(to({ plan_name: "tier-2" })).toMatchObject({ change: "inPlace", action: "scale_service" });
  for (const change of [
    { version: "18" },
    { storage_size_gb: 2 },
    { storage_tier: "standard" },
    { plan_name: "tier-2", version: "18" },
  ])
    expect(to(change)).toMatchObject({ change: "recorded" });
});

test("an engine, and a version, that this installation lacks make a database unavailable, not wrong", () => {
  const kafka = database.normalize({ database_type: "kafka", version: "3.9" });
  expect(database.faults(kafka)).toEqual([]);
  expect(database.unavailable(kafka)).toContain("no kafka");
  expect(database.faults(database.normalize({ database_type: "postgresql", plan: "tier-99" }))).toMatchObject([
    { field: "plan_name" },
  ]);
});

test("a resource that was never made is absent", async () => {
  expect(await database.observe("nobody", new AbortController().signal)).toMatchObject({
    phase: "absent",
    healthy: false,
  });
  expect(await database.outputs("nobody", new AbortController().signal)).toBeUndefined();
});
