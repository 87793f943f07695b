import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { EngineDriver } from "@holdfast/agent/engines/engine-driver.ts";
import { isEngine, loadDriver } from "@holdfast/agent/engines/drivers.ts";
import {
  type Engine,
  databaseEngines,
  type EngineFacts,
  engineCatalog,
} from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { engineConsoleOf } from "@holdfast/controller/insight/query-console/engine-consoles.ts";
import { servicesSchemaRules } from "@holdfast/controller/services/services-schema-rules.ts";
import { engineProfileOf } from "@holdfast/controller/services/engine/engine-profiles.ts";
import { recipeOf } from "@holdfast/image/catalog.ts";
import { CreateManagedServiceRequestSchema } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { describe, expect, test } from "vitest";
import { engineClientOf } from "@holdfast/cli/clients/engine-clients.ts";

type Flag = { [K in keyof EngineFacts]-?: EngineFacts[K] extends boolean ? K : never }[keyof EngineFacts];

/** Facets of a driver that each flag of the catalog promises. A new flag does not compile without its facet. */
// biome-ignore format: a table, aligned so that it reads as one
const facets = {
  hasDatabases:       ({ databases }) => [databases],
  hasQueues:          ({ queues }) => [queues],
  hasQueryStatistics: ({ queryStats, sessions }) => [queryStats, sessions],
} satisfies Record<Exclude<Flag, "hasWarmPool" | "hasPreparedDisks" | "upgradesInPlace">, (driver: EngineDriver) => readonly unknown[]>;

/** Engines whose drivers do not pass the conformance suite of drivers, each with the reason. */
const withoutSuite: Readonly<Record<string, string>> = {
  files:
    "clients have no sessions but signed requests; files/settings.test.ts and front/front.test.ts test its allow-list",
  etcd: "an engine of the tests, which admits every address; test/system/peers-*.long.test.ts run it",
};

const suite = "conformsToEngineDriver(";
const engineFolders = join(import.meta.dirname, "../../agent/src/engines");

const runAsEngine = () => Promise.reject(new Error("no program runs here"));
const drivers = new Map<Engine, EngineDriver>();
for (const { engine } of engineCatalog) drivers.set(engine, await loadDriver(engine, runAsEngine));

test("the API names the engines of the catalog, agents have a driver for each, and images its versions", () => {
  const engines = engineCatalog.map(({ engine }) => engine);
  const names = databaseEngines.flatMap(({ engine, aliases = [] }) => [engine, ...aliases]);
  const { databaseType } = CreateManagedServiceRequestSchema.field;
  expect(servicesSchemaRules).toContainEqual([databaseType, { enum: names }]);
  expect(engines.filter((engine) => !isEngine(engine))).toEqual([]);
  const missing = engineCatalog.flatMap(({ engine, versions }) =>
    versions.filter((version) => recipeOf(engine, version) === undefined).map((version) => `${engine} ${version}`),
  );
  expect(missing).toEqual([]);
});

describe.each(engineCatalog)("$engine", (facts) => {
  const driver = drivers.get(facts.engine) as EngineDriver;

  test("the driver is the one of the engine, with its topology", () => {
    expect(driver.engine).toBe(facts.engine);
    expect(driver.topology).toBe(facts.topology);
    expect(driver.peers !== undefined).toBe(facts.topology === "peers");
  });

  test("the driver passes the conformance suite, of which the allow-list is a part", () => {
    if (Object.hasOwn(withoutSuite, facts.engine)) return;
    const folder = join(engineFolders, facts.engine);
    const files = ["driver.test.ts", "driver.long.test.ts"].map((name) => join(folder, name));
    const passing = files.filter((file) => existsSync(file) && readFileSync(file, "utf8").includes(suite));
    expect(passing, `add ${files.join(" or ")} with ${suite}...)`).not.toEqual([]);
  });

  test.each(Object.keys(facets) as (keyof typeof facets)[])("%s matches the driver's facets", (flag) => {
    // The layout of a service decides whether it has databases.
    const isPromised = facts[flag] || (flag === "hasDatabases" && facts.layoutModes !== undefined);
    for (const facet of facets[flag](driver)) expect(facet !== undefined).toBe(isPromised);
  });

  test("upgrades, backups and the pooler match the driver's facets", () => {
    const { backup, upgrade, offersPooler } = driver;
    expect(upgrade === undefined).toBe(facts.upgradesInPlace);
    expect(offersPooler !== undefined).toBe(facts.pooler !== undefined);
    expect(
      backup && {
        kind: backup.kind,
        restorePoints: backup.log === undefined ? "snapshots" : "any_second",
        increments: backup.pages !== undefined,
      },
    ).toEqual(facts.backups && { ...facts.backups, fork: undefined, byIdOnly: undefined });
  });

  test("the query console has the engine's grammar if the driver runs its statements", () => {
    expect(engineConsoleOf(facts.engine) !== undefined).toBe(driver.readOnlyQuery !== undefined);
  });

  test.skipIf(facts.family !== undefined)("the command line has a client of the engine", () => {
    expect(engineClientOf({ name: "x", database_type: facts.engine }).programs).not.toEqual([]);
  });

  test("new services have no user, and the client no login, if the driver has no users", () => {
    if (driver.users !== undefined) return;
    expect(engineProfileOf(facts.engine).hasDefaultUser).toBe(false);
    if (facts.family === undefined)
      expect(engineClientOf({ name: "x", database_type: facts.engine }).hasNoUsers).toBe(true);
  });

  test("the controllers' profile has replicas if the driver replicates", () => {
    expect(engineProfileOf(facts.engine).replicas !== undefined).toBe(driver.replication !== undefined);
  });
});
