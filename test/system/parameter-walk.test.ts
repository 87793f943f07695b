import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Parameter } from "@holdfast/common/engine-catalog/parameter.ts";
import { printQuantity } from "@holdfast/common/engine-catalog/quantity.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql } from "../support/api/clients.ts";
import type { ProblemJson, ServiceJson } from "../support/api/service-json.ts";
import { type Platform, startPlatform } from "../support/platform/platform.ts";
import { createServices, expectStatus, type RunningService, type Services } from "../support/platform/services.ts";
import { waitUntil } from "../support/wait-until.ts";

const longMs = 450_000;
/** Live parameters are backed up under so many of them together. */
const atOnce = 12;

/** Of the log of a Valkey, and of its scripts: tests of their own bring these to their ends. */
const elsewhere = [/^busy-reply-threshold$/, /^auto-aof-/, /^appendfsync$/, /^no-appendfsync-on-rewrite$/];

/** Replay takes as much of these as the log was written under. */
const ofReplay = [
  "max_connections",
  "max_worker_processes",
  "max_prepared_transactions",
  "max_locks_per_transaction",
  "wal_level",
  "track_commit_timestamp",
];

interface Health {
  readonly status: string;
  readonly reason: string | null;
}

interface Extreme {
  readonly name: string;
  readonly value: string;
  readonly needsRestart: boolean;
}

function extremesOf({ name, unit, minimum, maximum, leastOn, values, needsRestart }: Parameter): Extreme[] {
  const print = (number: number) => (unit === null ? String(number) : printQuantity(number, unit));
  const numbers = [minimum, leastOn, maximum].flatMap((number) => (number === null ? [] : [print(number)]));
  return [...new Set([...values, ...numbers])].map((value) => ({ name, value, needsRestart }));
}

/** False for an engine without a free connection; throws any other error. */
function isFull(error: unknown): false {
  if (error instanceof Error && "code" in error && error.code === "53300") return false;
  throw error;
}

describe("each parameter of the catalog, at its least and greatest value", () => {
  let platform: Platform;
  let services: Services;
  let postgresql: RunningService;
  let valkey: RunningService;

  beforeAll(async () => {
    platform = await startPlatform({
      environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "1", HOLDFAST_IDLE_LOG_AFTER_S: "3" },
    });
    services = createServices(platform);
    const allowed_cidrs = ["127.0.0.0/8"];
    [postgresql, valkey] = await Promise.all([
      services.createRunning("walk", { allowed_cidrs, version: "17" }),
      services.createRunning("walk-cache", { allowed_cidrs, database_type: "valkey" }),
    ]);
  }, longMs);
  afterAll(() => platform?.remove(), longMs);

  const configuration = ({ service }: RunningService) => `/managed-services/${service.id}/configuration`;

  /** Resolves with the values that were taken: the greatest that the plan has room for in the place of one that it refuses. */
  async function take(of: RunningService, { name, value }: Extreme): Promise<string | undefined> {
    const set = (text: string) => platform.rest.patch<ProblemJson>(configuration(of), { parameters: { [name]: text } });
    const answer = await set(value);
    if (answer.status !== 400) return expectStatus(answer, 200) && value;
    expect(answer.json.errors).toMatchObject([{ code: "exceeds_plan" }]);
    const detail = answer.json.errors[0]?.detail ?? "";
    expect(detail).toContain(name);
    const greatest = /it is (\S+) at most/.exec(detail)?.[1];
    if (greatest === undefined) return undefined;
    expectStatus(await set(greatest), 200);
    return greatest;
  }

  async function reset(of: RunningService, names: readonly string[]): Promise<void> {
    const parameters = Object.fromEntries(names.map((name) => [name, null]));
    expectStatus(await platform.rest.patch(configuration(of), { parameters }), 200);
  }

  async function runs(of: RunningService, what: string): Promise<void> {
    const { id } = of.service;
    await services.settled(id, "Running");
    let last: Health | undefined;
    const isWell = async () => {
      last = expectStatus(await platform.rest.get<Health>(`/managed-services/${id}/health`), 200).json;
      return last.status === "healthy";
    };
    await waitUntil(`the service is healthy under ${what}`, isWell, {
      withinMs: 60_000,
      everyMs: 100,
      describe: () => JSON.stringify(last),
    });
    // The platform gets in by sessions of its own.
    if (of === postgresql) expectStatus(await platform.rest.get(`/managed-services/${id}/databases`), 200);
  }

  async function backedUp({ service: { id } }: RunningService, under: readonly string[]): Promise<void> {
    const path = `/managed-services/${id}/backups`;
    const asked = expectStatus(await platform.rest.post<{ id: string }>(path, {}), 202).json;
    const state = async () =>
      expectStatus(await platform.rest.get<{ status: string }>(`${path}/${asked.id}`), 200).json.status;
    await waitUntil(
      `a backup under ${under.join(", ")} has ended`,
      async () => /completed|failed/.test(await state()),
      {
        withinMs: 60_000,
        everyMs: 100,
      },
    );
    expect({ under, state: await state() }).toEqual({ under, state: "completed" });
    expectStatus(await platform.rest.delete(`${path}/${asked.id}`), 204);
  }

  async function walk(of: RunningService, extremes: readonly Extreme[]): Promise<void> {
    for (let at = 0; at < extremes.length; at += atOnce) {
      const taken: Record<string, string> = {};
      const some = extremes.slice(at, at + atOnce);
      for (const extreme of some) {
        const value = await take(of, extreme);
        await runs(of, `${extreme.name} = ${value}`);
        if (value !== undefined) taken[extreme.name] = value;
        await reset(of, [extreme.name]);
      }
      expectStatus(await platform.rest.patch(configuration(of), { parameters: taken }), 200);
      const together = Object.entries(taken).map(([name, value]) => `${name} = ${value}`);
      await backedUp(of, together);
      await runs(of, together.join(", "));
      await reset(of, Object.keys(taken));
      await runs(of, "the defaults");
    }
  }

  const live = (engine: string, version: string, end: 0 | -1) =>
    [...parametersOf(engine, version).values()]
      .filter(({ name, needsRestart }) => !needsRestart && !elsewhere.some((pattern) => pattern.test(name)))
      .flatMap((parameter) => extremesOf(parameter).at(end) ?? []);

  it(
    "leaves a PostgreSQL healthy, backed up and changeable at the least",
    () => walk(postgresql, live("postgresql", "17", 0)),
    longMs,
  );
  it(
    "leaves a PostgreSQL healthy, backed up and changeable at the greatest",
    () => walk(postgresql, live("postgresql", "17", -1)),
    longMs,
  );
  it(
    "leaves a Valkey healthy, backed up and changeable at the least",
    () => walk(valkey, live("valkey", "8.1", 0)),
    longMs,
  );
  it(
    "leaves a Valkey healthy, backed up and changeable at the greatest",
    () => walk(valkey, live("valkey", "8.1", -1)),
    longMs,
  );

  it(
    "of those that are read at a start, is started with, and the log of all of it is restored",
    async () => {
      const { id } = postgresql.service;
      const sql = async (of: RunningService, text: string) => {
        const client = await openPostgresql(platform, of.connection, { password: of.password });
        try {
          return (await client.query<Record<string, unknown>>(text)).rows;
        } finally {
          await client.end();
        }
      };
      await sql(postgresql, "CREATE TABLE walked (parameter text, value text)");
      const walked: { parameter: string; value: string }[] = [];
      const atStart = [...parametersOf("postgresql", "17").values()].filter(({ needsRestart }) => needsRestart);
      for (const extreme of atStart.flatMap(extremesOf)) {
        const value = await take(postgresql, extreme);
        if (value === undefined) continue;
        await services.verb(id, "restart");
        await runs(postgresql, `${extreme.name} = ${value}`);
        const status = async () => {
          const path = configuration(postgresql);
          const { json } = await platform.rest.get<{ parameters: Record<string, { status: string }> }>(path);
          return json.parameters[extreme.name]?.status;
        };
        const what = `${extreme.name} = ${value} is applied`;
        await waitUntil(what, async () => (await status()) === "applied", { withinMs: 60_000, everyMs: 100 });
        if (ofReplay.includes(extreme.name)) {
          walked.push({ parameter: extreme.name, value });
          const insert = () => sql(postgresql, `INSERT INTO walked VALUES ('${extreme.name}', '${value}')`);
          // Of ten connections the platform may have the last one that is not reserved, for a moment.
          const isIn = () => insert().then(() => true, isFull);
          await waitUntil(`a user gets in under ${extreme.name} = ${value}`, isIn, { withinMs: 60_000, everyMs: 100 });
        }
        await reset(postgresql, [extreme.name]);
      }
      await services.verb(id, "restart");
      const point = new Date().toISOString();
      const to = async () => (await services.get(id)).backups?.restorable?.to ?? "";
      await waitUntil("all of it is durable", async () => (await to()) > point, { withinMs: longMs, everyMs: 200 });
      const asked = { restore_point: point, target_service_name: "walk-then" };
      const answer = await platform.rest.post<ServiceJson>(`/managed-services/${id}/backups/restore`, asked);
      const copy = expectStatus(answer, 202).json;
      await services.settled(copy.id, "Running", longMs);
      const found = await sql(await services.open(copy.id), "SELECT parameter, value FROM walked");
      expect(found).toEqual(walked);
    },
    longMs,
  );
});
