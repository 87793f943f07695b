import { isDeepStrictEqual } from "node:util";
import { isPinned, startupOptions } from "@holdfast/common/postgresql/session-settings.ts";
import { type Client, DatabaseError } from "pg";
import { expect } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { GiveUp, waitUntil } from "@holdfast/testing/wait-until.ts";
import { batchesOf, type Extreme } from "./extremes.ts";
import { createWalkedService, printValues, type WalkedService } from "./walked-service.ts";

/**
 * SQLSTATE of transient errors: a session from before a restart or a failover, or an engine without free connections.
 */
const passing = /^(53300|57P0[1-3]|25006)$/;

export const longMs = 470_000;
/** Startup options of the test's own sessions, so that no parameter under test changes their search path. */
const options = startupOptions({ search_path: "public" });
const wait = { withinMs: 60_000, everyMs: 50 };
/** Values that the engine prints by a synonym. */
const synonyms: Readonly<Record<string, string>> = { "wal_compression = on": "pglz" };
/** Number of parameters that are set together under one backup. */
const atOnce = 16;

/** A PostgreSQL whose parameters are set to their limits. */
export interface PostgresqlWalk extends WalkedService {
  readonly services: Services;
  readonly running: RunningService;
  /** A statement on the primary, in a session that no parameter ends. */
  sql<Row extends object = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** Resolves after two more checks of the primary by its agent: the second one began after the call. */
  checkedTwice(): Promise<void>;
  /** Resolves once new statements run with these values. */
  has(values: Readonly<Record<string, string>>): Promise<void>;
  /** Does the platform's own work in its own sessions: databases and users are listed, created and deleted. */
  manages(): Promise<void>;
  /** Runs the statement once; resolves with the engine's error, if there is one. */
  trySql(text: string): Promise<DatabaseError | undefined>;
  /** A new service of this name, restored to all rows that are acknowledged by now; it is Running. */
  restored(name: string): Promise<RunningService>;
  /** Runs a statement on another service that has this service's data and users. */
  readFrom(service: RunningService, text: string): Promise<Record<string, unknown>[]>;
  /** Throws when its recorded health has changed since it first was healthy. */
  wasHealthy(): Promise<void>;
  /** Ends its session. */
  close(): Promise<void>;
}

interface HealthEvents {
  readonly events: readonly { readonly data: { readonly from?: string } }[];
}

/** `body` adds to the request for the service. */
export async function createPostgresqlWalk(
  platform: Platform,
  version: string,
  body: Readonly<Record<string, unknown>>,
): Promise<PostgresqlWalk> {
  const services = createServices(platform);
  const request = { allowed_cidrs: ["127.0.0.0/8"], version, ...body };
  const { id } = await services.create(`walk-${version}`, request);
  // An image of the version may have to be built first.
  await services.settled(id, "Running", longMs);
  const running = await services.open(id);
  const { password } = running;
  const walked = createWalkedService(platform, services, running);
  let session: Client | undefined;

  async function connected(): Promise<Client> {
    session ??= await openPostgresql(platform, running.connection, { password, options });
    return session;
  }

  async function close(): Promise<void> {
    const ended = session;
    session = undefined;
    await ended?.end().catch(() => undefined);
  }

  const fixture: PostgresqlWalk = {
    ...walked,
    services,
    running,
    close,
    async runs(under) {
      // With few connections its own session would be too large a share.
      await close();
      await walked.runs(under);
    },
    async sql<Row extends object>(text: string, values: readonly unknown[] = []) {
      let refusal: unknown;
      const rows = await waitUntil(
        text,
        async () => {
          try {
            return (await (await connected()).query<Row>(text, [...values])).rows;
          } catch (error) {
            await close();
            if (error instanceof DatabaseError && !passing.test(error.code ?? ""))
              throw new GiveUp(`${text}: ${error.message}`, { cause: error });
            refusal = error;
            return undefined;
          }
        },
        { ...wait, describe: () => String(refusal) },
      );
      return rows;
    },
    async trySql(text) {
      try {
        await (await connected()).query(text);
        return undefined;
      } catch (error) {
        if (error instanceof DatabaseError) return error;
        throw error;
      }
    },
    async restored(name) {
      const restore_point = new Date().toISOString();
      const isDurable = async () => ((await services.get(id)).backups?.restorable?.to ?? "") > restore_point;
      await waitUntil("all of it is durable", isDurable, { withinMs: longMs, everyMs: 100 });
      const target = { restore_point, target_service_name: name };
      const response = await platform.rest.post<ServiceJson>(walked.path("/backups/restore"), target);
      const copy = expectStatus(response, 202).json;
      await services.settled(copy.id, "Running", longMs);
      return services.open(copy.id);
    },
    async readFrom({ connection, password: secret }, text) {
      const client = await openPostgresql(platform, connection, { password: secret, options });
      try {
        return (await client.query(text)).rows as Record<string, unknown>[];
      } finally {
        await client.end();
      }
    },
    async checkedTwice() {
      const check = async () => {
        const [row] = await fixture.sql(
          "SELECT tup_updated::int AS n FROM pg_stat_database WHERE datname = 'holdfast'",
        );
        return Number(row?.["n"]);
      };
      const before = await check();
      await waitUntil("the agent has looked at the engine", async () => (await check()) >= before + 2, {
        ...wait,
        describe: () => services.describe(walked.id),
      });
    },
    async has(values) {
      // The session has its own values of the others.
      const names = Object.keys(values).filter((name) => !isPinned(name));
      const read = () =>
        fixture.sql("SELECT name, current_setting(name) AS value FROM unnest($1::text[]) AS name", [names]);
      const expected = names.map((name) => ({ name, value: synonyms[`${name} = ${values[name]}`] ?? values[name] }));
      await waitUntil("the engine has the values", async () => isDeepStrictEqual(await read(), expected), {
        ...wait,
        describe: async () => JSON.stringify([expected, await read()]),
      });
    },
    async wasHealthy() {
      const { json } = expectStatus(await platform.rest.get<HealthEvents>(walked.path("/health/history")), 200);
      expect(json.events.filter(({ data }) => data.from === "healthy")).toEqual([]);
    },
    async manages() {
      const { rest } = platform;
      expectStatus(await rest.post(walked.path("/databases"), { name: "walked" }), 201);
      expectStatus(await rest.delete(walked.path("/databases/walked")), 204);
      expectStatus(await rest.post(walked.path("/database-users"), { username: "walked", role: "readonly" }), 201);
      expectStatus(await rest.delete(walked.path("/database-users/walked")), 204);
    },
  };
  return fixture;
}

/** Sets a running engine to each of these values, one at a time, and then to many of them together. */
export async function walkLive(platform: Platform, walk: PostgresqlWalk, extremes: readonly Extreme[]): Promise<void> {
  for (const batch of batchesOf(extremes, atOnce)) {
    const together: Record<string, string> = {};
    for (const extreme of batch) {
      const value = await walk.set(extreme);
      if (value === undefined) continue;
      const under = printValues({ [extreme.name]: value });
      together[extreme.name] = value;
      await walk.applied({ [extreme.name]: value });
      await walk.has({ [extreme.name]: value });
      await walk.checkedTwice();
      await walk.runs(under);
      expectStatus(await platform.rest.get(walk.path("/databases")), 200);
      await walk.reset([extreme.name]);
    }
    await walk.setAll(together);
    await walk.applied(together);
    await walk.has(together);
    const under = printValues(together);
    await walk.backedUp(under);
    await walk.manages();
    await walk.runs(under);
    await walk.reset(Object.keys(together));
    await walk.runs("the defaults");
  }
  await walk.wasHealthy();
}

export function startWalkPlatform(environment: Readonly<Record<string, string>> = {}): Promise<Platform> {
  return startPlatform({
    environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "1", HOLDFAST_IDLE_LOG_AFTER_S: "3", ...environment },
  });
}
