import type { Client } from "pg";
import { startWriter } from "../../faults/acknowledged-writer.ts";
import { type OperationJson, type ServiceJson, withPrimary } from "@holdfast/testing/api/service-json.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { createServices, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createFailures, failing } from "../replication/failures.ts";
import { openSession, readContents } from "./read-contents.ts";
import { type Action, faultsOf, type Moment, type WalkLedger } from "./walk-ledger.ts";
import type { WalkVictim } from "./walk-step.ts";

/** Limit for any single step on a busy machine, including kills. */
export const longMs = 300_000;

/** Limit of crashes within a time, as in controller/src/fleet/machine/machine-plan.ts. */
const crashesMax = 5;
const crashWindowMs = 600_000;

export const walkEnvironment = { HOLDFAST_FIRST_BACKUP_AFTER_S: "1", HOLDFAST_IDLE_LOG_AFTER_S: "3" };

export interface Answer {
  readonly status: number;
  readonly json: Readonly<Record<string, unknown>> & { readonly operation?: OperationJson | null };
  readonly text: string;
}

/** One service of any engine, with a writer that continues through all faults. */
export interface ServiceFixture {
  readonly platform: Platform;
  readonly services: Services;
  readonly source: RunningService;
  readonly ledger: WalkLedger;
  /** Manual backups, with the time of each request. */
  readonly backups: { readonly id: string; readonly startedAt: number }[];
  readonly failures: ReturnType<typeof createFailures>;
  /** Number of the next row. */
  nextRow(): number;
  /** Makes commits wait for a replica, so that no later failover loses acknowledged rows. */
  protect(): Promise<void>;
  /** Makes commits wait for no replica, before the replica is removed. */
  unprotect(): Promise<void>;
  /** Differences between a service and the ledger at the moment, a sentence each. */
  faultsIn(platform: Platform, service: RunningService, moment: Moment): Promise<readonly string[]>;
  /** Path of the service, or below it. */
  path(rest?: string): string;
  /** Resolves with a response of one of the statuses; throws for another. */
  call(verb: string, path: string, statuses: readonly number[], body?: object): Promise<Answer>;
  /** The service once it is Running and no operation is in progress. */
  settled(): Promise<ServiceJson>;
  /** Resolves when rows are acknowledged whose writes started after the call. */
  writesContinue(): Promise<void>;
  /** Stops the writer until `resume`. */
  pause(): Promise<void>;
  resume(): void;
  /** Kills the victim; false if it does not exist, or if it is a machine that `mayEnd` refuses. */
  kill(victim: WalkVictim): boolean;
  /**
   * True if the machine may end again, and counts that end: a fifth end within ten minutes makes the machine's state
   * failed until the first end is ten minutes old.
   */
  mayEnd(machine: string): boolean;
  remove(): Promise<void>;
}

/** A fixture whose service is a PostgreSQL. */
export interface WalkFixture extends ServiceFixture {
  /** Sessions with an open transaction, by name. */
  readonly open: Map<string, Client>;
  /** Runs `work` in a new session. */
  within<T>(work: (client: Client) => Promise<T>, database?: string, options?: string): Promise<T>;
}

/** Engine-specific parts of a fixture. */
export interface FixtureParts<C> extends Pick<ServiceFixture, "faultsIn"> {
  readonly platform: Platform;
  readonly services: Services;
  readonly source: RunningService;
  connect(): Promise<C>;
  /** Resolves once the row is acknowledged. */
  write(client: C, row: number): Promise<unknown>;
  close(client: C): Promise<void>;
  protect(fixture: ServiceFixture): Promise<void>;
  unprotect(fixture: ServiceFixture): Promise<void>;
}

/** Opens a fixture on a new platform, which is removed with the fixture. */
export async function openFixture<G>(on: (platform: Platform) => Promise<G>): Promise<G> {
  const platform = await startPlatform({ environment: walkEnvironment });
  try {
    return await on(platform);
  } catch (error) {
    await platform.remove();
    throw error;
  }
}

export const openWalkFixture = (): Promise<WalkFixture> => openFixture(walkFixtureOn);

async function walkFixtureOn(platform: Platform): Promise<WalkFixture> {
  const services = createServices(platform);
  const source = await services.createRunning("walker", {
    allowed_cidrs: ["127.0.0.0/8"],
    parameters: { max_prepared_transactions: "10" },
  });
  const connect = (database?: string, options?: string) => openSession(platform, source, database, options);
  const open = new Map<string, Client>();
  const first = await connect();
  await first.query("CREATE TABLE ledger (id bigint PRIMARY KEY, text text NOT NULL)");
  await first.query("CREATE TABLE transactions (name text PRIMARY KEY)");
  await first.end();
  const fixture: ServiceFixture = createFixture<Client>({
    platform,
    services,
    source,
    connect,
    write: (client, row) => client.query("INSERT INTO ledger VALUES ($1, md5($1::bigint::text))", [row]),
    close: (client) => client.end(),
    protect: untilSynchronous,
    async unprotect({ call, path, settled }) {
      await call("PATCH", path(), [200, 202], { replication_mode: "async" });
      await settled();
    },
    faultsIn: async (of, service, moment) => faultsOf(fixture.ledger, moment, await readContents(of, service)),
  });
  return {
    ...fixture,
    open,
    async within(work, database, options) {
      const client = await connect(database, options);
      try {
        return await work(client);
      } finally {
        await client.end().catch(() => undefined);
      }
    },
    async remove() {
      for (const client of open.values()) await client.end().catch(() => undefined);
      await fixture.remove();
    },
  };
}

async function untilSynchronous({ services, source, call, path }: ServiceFixture): Promise<void> {
  await call("PATCH", path(), [200, 202], { replication_mode: "sync" });
  const isProtected = async () => {
    const { replication } = await services.get(source.service.id);
    return replication !== null && replication.healthy && replication.standby_names.length > 0;
  };
  const describe = () => services.describe(source.service.id);
  await waitUntil("commits wait for the replica", isProtected, { withinMs: longMs, everyMs: 200, describe });
}

/** Writes rows from now on, until it is removed. */
export function createFixture<C>(parts: FixtureParts<C>): ServiceFixture {
  const { platform, services, source, faultsIn } = parts;
  const { id } = source.service;
  const ledger: WalkLedger = { rows: [], objects: [] };
  const stop = new AbortController();
  /** Times at which machines were ended, by machine. */
  const ends = new Map<string, number[]>();
  let rows = 0;
  const nextRow = () => (rows += 1);
  let gate: PromiseWithResolvers<void> | undefined;
  let writing: Promise<unknown> = Promise.resolve();
  let calls = 0;
  let primary = source.service.nodes[0]?.id;
  const writer = startWriter<C>({
    connect: parts.connect,
    async write(client) {
      await gate?.promise;
      if (stop.signal.aborted) return;
      const created: Action = { startedAt: Date.now() };
      const row = nextRow();
      ledger.rows.push({ id: row, created });
      const written = parts.write(client, row);
      writing = written.catch(() => undefined);
      await written;
      created.acknowledgedAt = Date.now();
    },
    close: parts.close,
    read: async () => [],
    signal: stop.signal,
  });

  const fixture: ServiceFixture = {
    platform,
    services,
    source,
    ledger,
    nextRow,
    faultsIn,
    protect: () => parts.protect(fixture),
    unprotect: () => parts.unprotect(fixture),
    backups: [],
    failures: createFailures(failing({ platform, services }, source), () => undefined, []),
    path: (rest = "") => `/managed-services/${id}${rest}`,
    async call(verb, path, statuses, body) {
      const send = () => {
        calls += 1;
        const headers = verb === "POST" ? { "idempotency-key": `walk ${calls}` } : {};
        const options = { headers, withinMs: longMs, ...(body !== undefined && { body }) };
        return platform.rest.insist(verb, path, options);
      };
      let response = await send();
      // A failover begins whenever the machine of an earlier kill is detected.
      while (response.status === 409 && !statuses.includes(409) && response.text.includes("operation_in_progress")) {
        await fixture.settled();
        response = await send();
      }
      if (!statuses.includes(response.status))
        throw new Error(`${verb} ${path} ${JSON.stringify(body)}: ${response.status} ${response.text}`);
      return response;
    },
    async settled() {
      const service = await services.settled(id, "Running", longMs);
      primary = withPrimary(service).primary_node_id;
      return service;
    },
    async writesContinue() {
      const since = Date.now();
      const goesOn = () =>
        ledger.rows.some(({ created }) => created.startedAt > since && created.acknowledgedAt !== undefined);
      const describe = () => services.describe(id);
      await waitUntil("writes are acknowledged", goesOn, { withinMs: longMs, everyMs: 20, describe });
    },
    async pause() {
      gate ??= Promise.withResolvers();
      await writing;
    },
    resume() {
      gate?.resolve();
      gate = undefined;
    },
    mayEnd(machine) {
      const now = Date.now();
      const recent = (ends.get(machine) ?? []).filter((at) => now - at < crashWindowMs);
      const may = recent.length < crashesMax - 1;
      ends.set(machine, may ? [...recent, now] : recent);
      return may;
    },
    kill(victim) {
      const { controllers, etcd, store, machines } = platform.processes();
      const machine = machines.find((each) => each.id === primary);
      const endsMachine = victim === "machine" || victim === "keeper";
      if (endsMachine && machine !== undefined && !fixture.mayEnd(machine.id)) return false;
      const pids = {
        engine: [machine?.engine],
        agent: machine?.agents ?? [],
        keeper: [machine?.keeper],
        machine: [machine?.launcher],
        controller: controllers,
        store: [store],
        etcd: [etcd],
      }[victim].filter((pid) => pid !== undefined);
      return pids.map((pid) => killImmediately(pid)).includes(true);
    },
    async remove() {
      stop.abort();
      fixture.resume();
      await writer.done;
      await platform.remove();
    },
  };
  return fixture;
}
