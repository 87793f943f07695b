import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { commandOnce, queryOnce } from "@holdfast/testing/api/clients.ts";
import { type OccupiedPort, occupyPort } from "@holdfast/testing/platform/occupied-port.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately, type MachineProcesses } from "@holdfast/testing/platform/platform-processes.ts";
import { createServices, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

/**
 * Duration of an outage: longer than every lease and timeout involved. `npm run faults -- --outages` uses the full
 * minute of the specification.
 */
export const outageMs = Number(process.env["HOLDFAST_TEST_OUTAGE_S"] ?? 16) * 1_000;

/** Response to a change that an agent carries out. */
export interface InProgressJson {
  readonly operation: { readonly id: string };
}

/** Ports of installation.json. */
interface Ports {
  readonly api: number;
  readonly agents: number;
  readonly etcd_client: number;
  readonly history: number;
}

interface Started {
  readonly platform: Platform;
  readonly services: Services;
  /** A PostgreSQL with a table `kept`. */
  readonly database: RunningService;
  /** A Valkey. */
  readonly cache: RunningService;
}

/** One platform with two services, which the outages of this folder share. */
export interface OutageFixture extends Started {
  /** Path of the database's service, with `rest` appended. */
  path(rest?: string): string;
  query(sql: string): Promise<{ turn: number }[]>;
  machineOf(running: RunningService): MachineProcesses | undefined;
  /** Processes of both services' engines. */
  engines(): (number | undefined)[];
  /** Resolves once both services respond, found by name. */
  expectServing(): Promise<void>;
  /** Expects that changes are accepted, and that a service can be created. */
  expectWorking(): Promise<void>;
  /** Resolves once both services are healthy, with no operation in progress. */
  expectHealthy(): Promise<void>;
  /** Occupies a port of the given processes, which are killed and cannot return until it is released. */
  occupy(port: keyof Ports, pids: () => readonly (number | undefined)[]): Promise<OccupiedPort>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

export function createOutageFixture(): OutageFixture {
  let platform: Platform | undefined;
  let running: Started | undefined;
  let proofs = 0;
  const started = () => {
    if (running === undefined) throw new Error("the platform was not started");
    return running;
  };
  const fixture: OutageFixture = {
    get platform() {
      return started().platform;
    },
    get services() {
      return started().services;
    },
    get database() {
      return started().database;
    },
    get cache() {
      return started().cache;
    },
    path: (rest = "") => `/managed-services/${fixture.database.service.id}${rest}`,
    query: (sql) => queryOnce<{ turn: number }>(fixture.platform, fixture.database.connection, fixture.database, sql),
    machineOf: ({ service }) => fixture.platform.processes().machines.find(({ id }) => id === service.nodes[0]?.id),
    engines: () => [fixture.database, fixture.cache].map((each) => fixture.machineOf(each)?.engine),
    async expectServing() {
      expect(await fixture.query("SELECT turn FROM kept LIMIT 1")).toHaveLength(1);
      expect(await commandOnce(fixture.platform, fixture.cache.connection, fixture.cache, "PING")).toBe("PONG");
    },
    async expectWorking() {
      const { platform, services, database } = fixture;
      const change = { tags: { at: new Date().toISOString() } };
      const check = async () => (await platform.rest.patch(fixture.path(), change)).status === 200;
      await waitUntil("the API accepts changes", check, { withinMs: 120_000, everyMs: 200 });
      await services.settled(database.service.id, "Running");
      proofs += 1;
      const { id } = await services.create(`proof-${proofs}`, { database_type: "valkey" });
      await services.settled(id, "Running");
      await services.delete(id);
    },
    async expectHealthy() {
      const { services, database, cache } = fixture;
      await waitUntil(
        "the platform is healthy",
        async () => {
          const found = await Promise.all([database, cache].map(({ service }) => services.get(service.id)));
          return found.every(
            ({ status, operation, health }) =>
              status === "Running" && operation === null && health.status === "healthy",
          );
        },
        { withinMs: 120_000, describe: () => services.describe(database.service.id) },
      );
    },
    occupy(port, pids) {
      const { ports } = JSON.parse(readFileSync(join(fixture.platform.directory, "installation.json"), "utf8")) as {
        ports: Ports;
      };
      return occupyPort(ports[port], () => {
        for (const pid of pids()) if (pid !== undefined) killImmediately(pid);
      });
    },
    async start() {
      platform = await startPlatform();
      const services = createServices(platform);
      const [database, cache] = await Promise.all([
        services.createRunning("database"),
        services.createRunning("cache", { database_type: "valkey" }),
      ]);
      running = { platform, services, database, cache };
      await fixture.query("CREATE TABLE kept AS SELECT 1 AS turn");
    },
    async remove() {
      await platform?.remove();
    },
  };
  return fixture;
}
