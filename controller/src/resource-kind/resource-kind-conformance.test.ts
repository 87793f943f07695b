import { randomBytes } from "node:crypto";
import { systemClock as clock } from "@holdfast/common/clock.ts";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { engineCatalog } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { type AppResources, createAppResources } from "@holdfast/testing/composition/app-resources.ts";
import { completePending, createStoredFixture, gadgetKind } from "@holdfast/testing/composition/stored-fixture.ts";
import { createCollections } from "@holdfast/testing/controller/test-collections.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { Ajv2020 } from "ajv/dist/2020.js";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { organizationKind } from "#access/organization/organization.ts";
import { createQuotas } from "#access/organization/quotas.ts";
import { defaultCatalog } from "#catalog/catalog.ts";
import { createEngineOffers } from "#catalog/engine-offer.ts";
import { machineKind } from "#fleet/machine/machine.ts";
import { createWarmPool } from "#fleet/warm-pool/warm-pool.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { completed, operationKind } from "#operation/operation.ts";
import { databaseUserId, databaseUserKind } from "#services/contents/user/database-user.ts";
import { createFilesKeyChanges } from "#services/files/files-key-changes.ts";
import { createDatabaseKind } from "#services/resource-kind/database-kind.ts";
import { createFilesKind } from "#services/resource-kind/files-kind.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import { createServiceCreation } from "#services/service/service-creation.ts";
import { newMachine } from "#services/service/service-machine.ts";
import type { AttachedResource, NewResource, ResourceKind, ResourceSpec } from "./resource-kind.ts";

// The contract of resource kinds toward bundles. The store is etcd; `comeAbout` simulates machines.

interface Scenario {
  readonly kind: ResourceKind;
  /** Valid and invalid specs, a pair that changes in place, if any does, and one that does not. */
  readonly good: readonly ResourceSpec[];
  readonly bad: readonly ResourceSpec[];
  readonly inPlace?: readonly [ResourceSpec, ResourceSpec];
  readonly otherwise: ResourceSpec;
  /** Completes everything that is in progress. */
  comeAbout(unit: UnitOfWork, id: string): Promise<void>;
  /** The owner that the resource stores. */
  ownerOf(id: string): Promise<unknown>;
}

const signal = new AbortController().signal;
const organizationId = "organization";
const owner = { kind: "project", id: "parent" };

let store: TestStore;
let collections: ReturnType<typeof createCollections>;
let appResources: AppResources;
let scenarios: Readonly<Record<string, Scenario>>;

beforeAll(async () => {
  store = await startTestStore();
  collections = createCollections(store.store);
  collections.set.open(gadgetKind);
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  const quotas = createQuotas(collections.set, clock);
  appResources = createAppResources({ set: collections.set, quotas, sealer, clock, newId: uuidv7 });
  await collections.set.ready();
  const unit = store.begin();
  unit.create(organizationKind, {
    metadata: newMetadata(organizationId, 1, { organizationId }),
    spec: { quota: {} },
    status: {},
  });
  await collections.organizations.untilRevision(await unit.commit(), 5_000);
  scenarios = { ...serviceScenarios(), fixture: fixtureScenario(), app: appScenario() };
});
afterAll(async () => {
  collections?.close();
  await store?.close();
});

function serviceScenarios(): { readonly database: Scenario; readonly files: Scenario } {
  const images = engineCatalog.flatMap(({ engine, versions }) =>
    versions.map((version) => ({ engine, version, available: true, image: "image" }) as never),
  );
  const fleet = { session: () => undefined, observation: () => undefined };
  const { services, operations, archives, machines, hosts } = collections;
  const shared = {
    begin: store.begin,
    quotas: createQuotas(collections.set, clock),
    services,
    operations,
    organizations: collections.organizations,
    users: collections.databaseUsers,
    archives,
    machines,
    hosts,
    fleet,
    catalog: defaultCatalog,
    engines: () => createEngineOffers(images),
    sealer: createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) }),
    clock,
    newId: uuidv7,
  };
  const creation = createServiceCreation({
    ...shared,
    warmPool: createWarmPool({ machines, hosts, fleet, isPaused: () => false, now: clock.now }),
    defaultAllowedCidrs: [],
    domain: "example",
    serviceMessage: () => {
      throw new Error("nobody is answered here");
    },
  });
  const ofServices: Pick<Scenario, "comeAbout" | "ownerOf"> = {
    async comeAbout(unit, id) {
      const service = await services.getCurrent(id);
      const operation = await operations.getCurrent(service?.object.status.operationId ?? "");
      if (service === undefined || operation === undefined) throw new Error("nothing is under way");
      const { metadata, status } = service.object;
      unit.update(operationKind, operation, completed(operation.object, clock.now()));
      if (metadata.deletionRequestedAt !== undefined) {
        unit.remove(managedServiceKind, service);
        unit.releaseName(managedServiceKind, organizationId, metadata.name);
        return;
      }
      const [node] = service.object.spec.nodes;
      const machine = node && (await machines.getCurrent(node.id));
      if (node !== undefined && machine === undefined)
        unit.create(machineKind, newMachine(service.object, node, defaultCatalog, clock.now()));
      const health = { ...status.health, status: "healthy" as const, reason: "" };
      unit.update(managedServiceKind, service, {
        ...service.object,
        status: { ...status, state: "Running", health, operationId: null },
      });
    },
    ownerOf: async (id) => (await services.getCurrent(id))?.object.metadata.managedBy,
  };
  const database: Scenario = {
    ...ofServices,
    kind: createDatabaseKind({ ...shared, creation, consumers: [] }),
    good: [
      { database_type: "postgresql" },
      { database_type: "valkey", plan: "tier-2", storage_gb: 3, allowed_cidrs: ["10.0.0.0/8"], tags: { a: "b" } },
      { database_type: "tsql", layout_mode: "multi-db" },
    ],
    bad: [
      {},
      { database_type: "tsql", layout_mode: "two" },
      { database_type: "tsql", server_collation: "Klingon_CI_AS" },
      { database_type: "postgresql", plan: "tier-1", plan_name: "tier-1" },
      { database_type: "postgresql", storage_gb: 0 },
      { database_type: "postgresql", disk: 1 },
    ],
    inPlace: [
      { database_type: "valkey", plan: "tier-1" },
      { database_type: "valkey", plan: "tier-2" },
    ],
    otherwise: { database_type: "valkey", plan: "tier-1", storage_gb: 2 },
  };
  const files: Scenario = {
    ...ofServices,
    kind: createFilesKind({
      ...shared,
      creation,
      keys: createFilesKeyChanges(shared),
      consumers: [],
      hostsReported: async () => undefined,
    }),
    good: [{}, { plan: "tier-2", storage_gb: 3, allowed_cidrs: ["10.0.0.0/8"], tags: { a: "b" } }],
    bad: [{ database_type: "files" }, { version: "1" }, { parameters: {} }, { storage_gb: 0 }],
    otherwise: { plan: "tier-2" },
  };
  return { database, files };
}

function fixtureScenario(): Scenario {
  const gadgets = collections.set.open(gadgetKind);
  return {
    kind: createStoredFixture(gadgets),
    good: [{}, { image: "a", env: { KEY: "v" } }],
    bad: [{ more: 1 }],
    inPlace: [{ image: "a" }, { image: "b" }],
    otherwise: { image: "a", port: 81 },
    async comeAbout(unit, id) {
      const gadget = await gadgets.getCurrent(id);
      if (gadget === undefined) throw new Error("nothing is under way");
      completePending(unit, gadget);
    },
    ownerOf: async (id) => (await gadgets.getCurrent(id))?.object.metadata.managedBy,
  };
}

function appScenario(): Scenario {
  return {
    kind: appResources.kind,
    good: [
      { image: "shop:1", auth: "none" },
      { image: "shop:1", auth: { type: "login_form", username: "admin" }, domain: "Shop.example." },
      { image_ref: "registry.test/shop:1", port: 80, env: { KEY: "v" }, plan: "tier-2", storage_gb: 3, replicas: 2 },
    ],
    bad: [
      {},
      { image: "shop:1", image_ref: "shop:1" },
      { image: "shop:1", port: 0 },
      { image: "shop:1", more: 1 },
      { image: "shop:1", auth: "basic" },
      { image: "shop:1", domain: "" },
      { image: "shop:1", auth: { type: "login_form", username: "root" } },
    ],
    inPlace: [{ image: "shop:1" }, { image: "shop:2", env: { KEY: "v" }, auth: "login_form" }],
    otherwise: { image: "shop:1", replicas: 2 },
    comeAbout: appResources.complete,
    ownerOf: async (id) => (await appResources.appOf(id))?.metadata.managedBy,
  };
}

const scenarioOf = (name: string): Scenario => {
  const scenario = scenarios[name];
  if (scenario === undefined) throw new Error(`there is no world of ${name}`);
  return scenario;
};

/** One transaction, with the record of it that a composition would write. */
async function committed<T>(change: (unit: UnitOfWork) => Promise<T>): Promise<T> {
  const unit = store.begin();
  unit.audit({
    organizationId,
    actor: "test",
    source: "",
    action: "composition.step",
    objectKind: "composition",
    objectId: "parent",
    result: "ok",
    requestId: "",
  });
  const answer = await change(unit);
  await collections.untilRevision(await unit.commit(), 5_000);
  return answer;
}

let resources = 0;

describe.each(["database", "files", "fixture", "app"])("the kind %s", (name) => {
  const kind = () => scenarioOf(name).kind;
  const spec = (written: ResourceSpec) => kind().normalize(written);
  const requested = (written: ResourceSpec, resourceName = `made-${(resources += 1)}`): NewResource => ({
    id: uuidv7(),
    name: resourceName,
    organizationId,
    spec: spec(written),
    owner,
  });
  const phaseOf = async (id: string) => (await kind().observe(id, signal, { isCurrent: true })).phase;
  const make = async (resource: NewResource) => {
    await committed((unit) => kind().create(unit, resource, signal));
    return resource.id;
  };
  const settle = (id: string) => committed((unit) => scenarioOf(name).comeAbout(unit, id));
  const running = async (written: ResourceSpec) => {
    const id = await make(requested(written));
    await settle(id);
    return id;
  };

  test("publishes a schema that accepts valid specs and refuses invalid ones", () => {
    const { good, bad } = scenarioOf(name);
    const options = { strict: true, strictTypes: false, strictRequired: false };
    const validate = new Ajv2020(options).compile(kind().schema({}));
    expect(good.map((each) => validate(each))).toEqual(good.map(() => true));
    expect(bad.map((each) => validate(each))).toEqual(bad.map(() => false));
    for (const implied of Object.values(kind().aliases)) new Ajv2020(options).compile(kind().schema(implied));
  });

  test("normalizes specs idempotently, without a difference, and costs integer cents", () => {
    for (const each of scenarioOf(name).good) {
      const normalized = spec(each);
      expect(kind().normalize(normalized)).toEqual(normalized);
      expect(kind().diff(normalized, normalized)).toEqual({ change: "unchanged" });
      expect(kind().faults(normalized)).toEqual([]);
      expect(kind().unavailable(normalized)).toBeUndefined();
      for (const { cents } of kind().monthlyCost(normalized)) expect(Number.isInteger(cents) && cents >= 0).toBe(true);
      for (const amount of Object.values(kind().quotaOf(normalized))) expect(amount).toBeGreaterThan(0);
    }
  });

  test("distinguishes changes in place from changes that are only recorded", () => {
    const { inPlace, good, otherwise } = scenarioOf(name);
    const [before, after] = (inPlace ?? []).map(spec);
    if (before !== undefined && after !== undefined)
      expect(kind().diff(before, after)).toMatchObject({ change: "inPlace" });
    expect(kind().diff(before ?? spec(good[0] ?? {}), spec(otherwise))).toMatchObject({ change: "recorded" });
  });

  test("observes a resource that was never created as absent", async () => {
    expect(await kind().observe("nobody", signal)).toMatchObject({ phase: "absent", healthy: false });
    expect(await kind().outputs("nobody", signal)).toBeUndefined();
    expect(await committed((unit) => kind().remove(unit, "nobody", { isOrderly: true }, signal))).toBe(false);
  });

  test("creates a resource with its owner in the caller's transaction, once", async () => {
    const { good, ownerOf } = scenarioOf(name);
    const resource = requested(good[0] ?? {});
    const seen: string[] = [];
    const watch = kind().subscribe((id) => seen.push(id));
    const lost = store.begin();
    await kind().create(lost, resource, signal);
    lost.onlyWhile({ key: "/holdfast/v1/nothing", modRevision: 17n });
    await expect(lost.commit()).rejects.toThrow(Conflict);
    expect(await phaseOf(resource.id)).toBe("absent");

    const before = kind().version(resource.id);
    await make(resource);
    expect([await phaseOf(resource.id), await ownerOf(resource.id)]).toEqual(["creating", owner]);
    expect(kind().version(resource.id)).not.toBe(before);
    expect(seen).toContain(resource.id);
    watch.close();
    await expect(make(resource)).rejects.toThrow();
    await settle(resource.id);
    expect(await kind().observe(resource.id, signal, { isCurrent: true })).toMatchObject({
      phase: "running",
      healthy: true,
      detail: null,
    });
    expect((await kind().observe(resource.id, signal)).actual).toMatchObject(resource.spec);
  });

  test("changes a resource in place, idempotently after a crash", async () => {
    const { inPlace } = scenarioOf(name);
    if (inPlace === undefined) return expect(name).toBe("files");
    const [before, after] = inPlace;
    const id = await running(before);
    const difference = kind().diff(spec(before), spec(after));
    if (difference.change !== "inPlace") throw new Error("it is a change in place");
    const act = () => committed(async (unit) => kind().act?.(unit, id, difference.action, spec(after), signal));
    await act();
    expect(await phaseOf(id)).toBe("changing");
    const version = kind().version(id);
    await act();
    expect(kind().version(id)).toBe(version);
    await settle(id);
    expect(await phaseOf(id)).toBe("running");
    expect((await kind().observe(id, signal)).actual).toMatchObject(spec(after));
  });

  test("detaches a resource from its parent, and attaches it again", async () => {
    const { ownerOf, good } = scenarioOf(name);
    const id = await running(good[0] ?? {});
    await committed((unit) => kind().mark(unit, id, undefined, signal));
    expect(await ownerOf(id)).toBeUndefined();
    await committed((unit) => kind().mark(unit, id, owner, signal));
    expect(await ownerOf(id)).toEqual(owner);
  });

  test("removes a resource in any state, once, and its name can be reused", async () => {
    const [good = {}] = scenarioOf(name).good;
    const fresh = requested(good);
    await make(fresh);
    const ran = requested(good);
    await make(ran);
    await settle(ran.id);
    for (const { id } of [fresh, ran]) {
      const remove = () => committed((unit) => kind().remove(unit, id, { isOrderly: false }, signal));
      expect([await remove(), await phaseOf(id), await remove()]).toEqual([true, "deleting", false]);
    }
    await expect(make(requested(good, ran.name))).rejects.toThrow("is in use");
    await settle(ran.id);
    expect(await phaseOf(ran.id)).toBe("absent");
    const next = await make(requested(good, ran.name));
    expect([next === ran.id, await phaseOf(next)]).toEqual([false, "creating"]);
  });

  test("returns the connection data of a resource", async () => {
    const id = await running(scenarioOf(name).good[0] ?? {});
    const outputs = await kind().outputs(id, signal);
    if (kind().credentials !== undefined) return expect([name, outputs]).toEqual(["files", undefined]);
    expect(outputs).toMatchObject({ host: expect.stringMatching(/./), port: expect.any(Number) });
  });

  test("gives each consumer separate credentials, which end with the attachment", async () => {
    const { credentials } = kind();
    if (credentials === undefined) return expect(name).not.toBe("files");
    const id = await running(scenarioOf(name).good[0] ?? {});
    const [web, site] = [
      { id: uuidv7(), name: "web" },
      { id: uuidv7(), name: "site" },
    ];
    const attach = (consumer: typeof web) => committed((unit) => credentials.attach(unit, id, consumer, signal));
    const detach = (consumer: typeof web) => committed((unit) => credentials.detach(unit, id, consumer.id, signal));
    const first = await attach(web);
    expect(first).toMatchObject({ type: "files", secretAccessKey: expect.stringMatching(/./) });
    const version = kind().version(id);
    expect([await attach(web), kind().version(id)]).toEqual([first, version]);
    const other = await attach(site);
    expect(other).not.toEqual(first);
    expect([await detach(web), await detach(web)]).toEqual([true, false]);
    expect(await attach(site)).toEqual(other);
    expect(await attach(web)).not.toEqual(first);
    expect(await committed((unit) => credentials.attach(unit, "nobody", web, signal))).toBeUndefined();
    await committed((unit) => kind().remove(unit, id, { isOrderly: true }, signal));
    expect(await detach(web)).toBe(false);
  });

  test("wires attachments into a consumer, idempotently", async () => {
    const { consumer } = kind();
    if (consumer?.wire === undefined) return expect(name).not.toBe("fixture");
    const { wire } = consumer;
    const database = scenarioOf("database").kind;
    const [postgres, valkey] = [requested({}), requested({})].map(({ id, name: called }) => ({ id, called }));
    const specs = [{ database_type: "postgresql" }, { database_type: "valkey" }];
    for (const [index, each] of [postgres, valkey].entries()) {
      if (each === undefined) continue;
      const resource = { ...requested({}, each.called), id: each.id, spec: database.normalize(specs[index] ?? {}) };
      await committed((unit) => database.create(unit, resource, signal));
    }
    const outputs = await Promise.all([postgres, valkey].map((each) => database.outputs(each?.id ?? "", signal)));
    const attached = outputs.flatMap((each, index) =>
      each === undefined ? [] : [{ prefix: index === 0 ? "DB" : "CACHE", outputs: each }],
    );
    expect(attached).toHaveLength(2);
    const id = await running({ attachments: ["db", { name: "cache", prefix: "CACHE" }] });
    const received = async () => {
      await committed((unit) => wire(unit, id, attached, signal));
      return (await collections.set.open(gadgetKind).getCurrent(id))?.object.status.environment;
    };
    const first = await received();
    expect(Object.keys(first ?? {}).toSorted()).toEqual([
      "CACHE_HOST",
      "CACHE_PASSWORD",
      "CACHE_PORT",
      "CACHE_URL",
      "CACHE_USERNAME",
      "DATABASE_URL",
      "PLATFORM_API_TOKEN",
      "PLATFORM_API_URL",
    ]);
    expect(await received()).toEqual(first);
    // A detached resource has no variables any more.
    attached.pop();
    expect(Object.keys((await received()) ?? {}).toSorted()).toEqual([
      "DATABASE_URL",
      "PLATFORM_API_TOKEN",
      "PLATFORM_API_URL",
    ]);
  });
});

test("an app has a user in each attached database from its creation on", async () => {
  const { kind } = scenarioOf("app");
  const database = scenarioOf("database").kind;
  const create = async (of: ResourceKind, name: string, written: ResourceSpec, attached: AttachedResource[] = []) => {
    const resource = { id: uuidv7(), name, organizationId, spec: of.normalize(written), owner, attached };
    await committed((unit) => of.create(unit, resource, signal));
    return resource.id;
  };
  const [orders, cache] = [
    await create(database, "app-orders", { database_type: "postgresql" }),
    await create(database, "app-cache", { database_type: "valkey" }),
  ];
  const [first, second] = [
    { kind: "database", id: orders, prefix: "ORDERS" },
    { kind: "database", id: cache, prefix: "CACHE" },
  ];
  const id = await create(kind, "app-shop", { image: "shop:1", attachments: ["orders"] }, [first]);
  const attachments = async () => (await appResources.appOf(id))?.spec.attachments ?? [];
  expect(await attachments()).toMatchObject([
    { serviceId: orders, prefix: "ORDERS", login: { engine: "postgresql", username: expect.stringMatching(/^app_/) } },
  ]);
  await committed((unit) => appResources.complete(unit, id));
  const attach = (...attached: AttachedResource[]) =>
    committed(async (unit) => kind.consumer?.attach?.(unit, id, attached, signal));
  const version = kind.version(id);
  await attach(first);
  expect(kind.version(id)).toBe(version);
  await attach(first, second);
  expect((await attachments()).map(({ prefix }) => prefix)).toEqual(["ORDERS", "CACHE"]);
  expect(await kind.observe(id, signal, { isCurrent: true })).toMatchObject({ phase: "changing" });
  // The project deletes the app before its database.
  expect(kind.protectedBy(id)).toBeUndefined();
  expect(kind.faults(kind.normalize({ image: "shop:1", attachments: ["a", { resource: "a", prefix: "B" }] }))).toEqual([
    { field: "attachments", pointer: "/attachments", code: "duplicate", detail: "has a twice" },
  ]);
  expect(kind.faults(kind.normalize({}))).toMatchObject([{ field: "image", code: "required" }]);
  expect(kind.unavailable(kind.normalize({ image: "ghcr.io/shop:1" }))).toContain("registry");
});

test("a database changes its plan in place, and everything else is only recorded", () => {
  const { kind } = scenarioOf("database");
  const before = kind.normalize({ database_type: "postgresql" });
  const to = (change: ResourceSpec) => kind.diff(before, { ...before, ...change });
  expect(to({ plan_name: "tier-2" })).toMatchObject({ change: "inPlace", action: "scale_service" });
  for (const change of [
    { version: "18" },
    { storage_size_gb: 2 },
    { storage_tier: "standard" },
    { plan_name: "tier-2", version: "18" },
  ])
    expect(to(change)).toMatchObject({ change: "recorded" });
});

test("a password reset notifies subscribers and changes the outputs", async () => {
  const { kind } = scenarioOf("database");
  const id = uuidv7();
  const spec = kind.normalize({ database_type: "valkey" });
  const unit = store.begin();
  await kind.create(unit, { id, name: "reset", organizationId, spec, owner }, signal);
  const users = collections.databaseUsers;
  const revision = await unit.commit();
  await Promise.all([users, collections.services].map((each) => each.untilRevision(revision, 5_000)));
  const before = [kind.version(id), (await kind.observe(id, signal)).outputsVersion];
  const seen: string[] = [];
  const watch = kind.subscribe((changed) => seen.push(changed));
  const user = await users.getCurrent(databaseUserId(id, defaultUser));
  if (user === undefined) throw new Error("it has a user");
  const reset = store.begin();
  reset.update(databaseUserKind, user, user.object);
  await users.untilRevision(await reset.commit(), 5_000);
  const after = [kind.version(id), (await kind.observe(id, signal)).outputsVersion];
  expect(after.filter((each, index) => each === before[index])).toEqual([]);
  expect(seen).toEqual([id]);
  watch.close();
});

test("a missing engine or version makes a database unavailable, not faulty", () => {
  const { kind } = scenarioOf("database");
  const missing = kind.normalize({ database_type: "couchdb", version: "3.5" });
  expect(kind.faults(missing)).toEqual([]);
  expect(kind.unavailable(missing)).toContain("no couchdb");
  expect(kind.faults(kind.normalize({ database_type: "postgresql", plan: "tier-99" }))).toMatchObject([
    { field: "plan_name" },
  ]);
});

test("the sign-in in front of an app is turned on and off without a deployment", async () => {
  const { kind, appOf, complete } = appResources;
  const spec = (auth?: string) => kind.normalize({ image: "shop:1", ...(auth && { auth }) });
  const id = uuidv7();
  const resource = { id, name: "gated", organizationId, spec: spec(), owner };
  await committed((unit) => kind.create(unit, resource, signal));
  await committed((unit) => complete(unit, id));
  const before = (await appOf(id))?.spec.hosting?.deploymentId;
  const act = (target: ResourceSpec) => committed(async (unit) => kind.act?.(unit, id, "redeploy_app", target, signal));
  expect(kind.diff(spec(), spec("login_form"))).toMatchObject({ change: "inPlace", action: "redeploy_app" });
  await act(spec("login_form"));
  const password = (await appOf(id))?.spec.hosting?.loginForm?.sealedPassword;
  expect(password).toMatch(/^sealed\./);
  await act(spec("login_form"));
  expect((await appOf(id))?.spec.hosting).toMatchObject({
    deploymentId: before,
    loginForm: { sealedPassword: password },
  });
  expect((await kind.observe(id, signal)).actual).toMatchObject(spec("login_form"));
  await act(spec("none"));
  expect((await appOf(id))?.spec.hosting?.loginForm).toBeUndefined();
  expect((await kind.observe(id, signal)).actual).not.toHaveProperty("auth");
});

test("an app whose deployment failed runs with the former settings, and its observation has the reason", async () => {
  const { kind, appOf, complete, fail } = appResources;
  const spec = (name: string) => kind.normalize({ image: name });
  const id = uuidv7();
  const resource = { id, name: "failed", organizationId, spec: spec("shop:1"), owner };
  await committed((unit) => kind.create(unit, resource, signal));
  await committed((unit) => complete(unit, id));
  await committed(async (unit) => kind.act?.(unit, id, "redeploy_app", spec("shop:crash"), signal));
  expect(await kind.observe(id, signal)).not.toHaveProperty("changeFailure");
  await committed((unit) => fail(unit, id, "It ended."));
  expect(await kind.observe(id, signal)).toMatchObject({
    phase: "running",
    changeFailure: "It ended.",
    actual: { image: "shop:1" },
  });
  const before = (await appOf(id))?.spec.hosting?.deploymentId;
  await committed(async (unit) => kind.act?.(unit, id, "redeploy_app", spec("shop:crash"), signal));
  expect((await appOf(id))?.spec.hosting?.deploymentId).not.toBe(before);
});

test("the domain of an app is added, replaced and removed without a deployment, beside the domains of its users", async () => {
  const { kind, appOf, complete } = appResources;
  const spec = (domain?: string) => kind.normalize({ image: "shop:1", ...(domain && { domain }) });
  const id = uuidv7();
  const resource = { id, name: "named", organizationId, spec: spec("Shop.Example."), owner };
  await committed((unit) => kind.create(unit, resource, signal));
  await committed((unit) => complete(unit, id));
  const before = (await appOf(id))?.spec;
  expect(before?.domains).toMatchObject([{ name: "shop.example", verifiedAt: null, ofBundle: true }]);
  expect((await kind.observe(id, signal)).actual).toMatchObject({ domain: "shop.example" });
  const act = (target: ResourceSpec) => committed(async (unit) => kind.act?.(unit, id, "redeploy_app", target, signal));
  expect(kind.diff(spec("shop.example"), spec("store.example"))).toMatchObject({ change: "inPlace" });
  await act(spec("shop.example"));
  expect((await appOf(id))?.spec.domains).toEqual(before?.domains);
  await act(spec("store.example"));
  await act(spec("store.example"));
  const after = (await appOf(id))?.spec;
  expect(after?.domains).toMatchObject([{ name: "store.example", ofBundle: true }]);
  expect(after?.domains[0]?.token).not.toBe(before?.domains[0]?.token);
  expect(after?.hosting?.deploymentId).toBe(before?.hosting?.deploymentId);
  await act(spec());
  expect((await appOf(id))?.spec.domains).toEqual([]);
  expect((await kind.observe(id, signal)).actual).not.toHaveProperty("domain");
  for (const domain of ["platform.test", "a.platform.test", "no-domain", "192.0.2.1"])
    expect(kind.faults(spec(domain))).toMatchObject([{ field: "domain" }]);
});
