import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Parameter } from "@holdfast/common/engine-catalog/parameter.ts";
import { printQuantity } from "@holdfast/common/engine-catalog/quantity.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const longMs = 450_000;
/** Number of parameters that are set together under one backup. */
const atOnce = 12;

/** Parameters of Valkey's log and scripts. Other tests cover their limits. */
const testedElsewhere = [/^busy-reply-threshold$/, /^auto-aof-/, /^appendfsync$/, /^no-appendfsync-on-rewrite$/];

interface Health {
  readonly status: string;
  readonly reason: string | null;
}

interface Extreme {
  readonly name: string;
  readonly value: string;
}

function extremesOf({ name, unit, minimum, maximum, minimumEnabled, values }: Parameter): Extreme[] {
  const print = (number: number) => (unit === null ? String(number) : printQuantity(number, unit));
  const numbers = [minimum, minimumEnabled, maximum].flatMap((number) => (number === null ? [] : [print(number)]));
  return [...new Set([...values, ...numbers])].map((value) => ({ name, value }));
}

describe("each parameter of a Valkey, at its least and greatest value", () => {
  let platform: Platform;
  let services: Services;
  let valkey: RunningService;

  beforeAll(async () => {
    platform = await startPlatform({
      environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "1", HOLDFAST_IDLE_LOG_AFTER_S: "3" },
    });
    services = createServices(platform);
    valkey = await services.createRunning("walk", { allowed_cidrs: ["127.0.0.0/8"], database_type: "valkey" });
  }, longMs);
  afterAll(() => platform?.remove(), longMs);

  const configuration = ({ service }: RunningService) => `/managed-services/${service.id}/configuration`;

  /** Resolves with the accepted value: the greatest that fits the plan in place of one that it rejects. */
  async function take(of: RunningService, { name, value }: Extreme): Promise<string | undefined> {
    const set = (text: string) => platform.rest.patch<ProblemJson>(configuration(of), { parameters: { [name]: text } });
    const response = await set(value);
    if (response.status !== 400) return expectStatus(response, 200) && value;
    expect(response.json.errors).toMatchObject([{ code: "exceeds_plan" }]);
    const detail = response.json.errors[0]?.detail ?? "";
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
    const isHealthy = async () => {
      last = expectStatus(await platform.rest.get<Health>(`/managed-services/${id}/health`), 200).json;
      return last.status === "healthy";
    };
    await waitUntil(`the service is healthy under ${what}`, isHealthy, {
      withinMs: 60_000,
      everyMs: 100,
      describe: () => JSON.stringify(last),
    });
  }

  async function backedUp({ service: { id } }: RunningService, under: readonly string[]): Promise<void> {
    const path = `/managed-services/${id}/backups`;
    const requested = expectStatus(await platform.rest.post<{ id: string }>(path, {}), 202).json;
    const state = async () =>
      expectStatus(await platform.rest.get<{ status: string }>(`${path}/${requested.id}`), 200).json.status;
    await waitUntil(
      `a backup under ${under.join(", ")} has ended`,
      async () => /completed|failed/.test(await state()),
      {
        withinMs: 60_000,
        everyMs: 100,
      },
    );
    expect({ under, state: await state() }).toEqual({ under, state: "completed" });
    expectStatus(await platform.rest.delete(`${path}/${requested.id}`), 204);
  }

  async function walk(of: RunningService, extremes: readonly Extreme[]): Promise<void> {
    for (let at = 0; at < extremes.length; at += atOnce) {
      const accepted: Record<string, string> = {};
      const some = extremes.slice(at, at + atOnce);
      for (const extreme of some) {
        const value = await take(of, extreme);
        await runs(of, `${extreme.name} = ${value}`);
        if (value !== undefined) accepted[extreme.name] = value;
        await reset(of, [extreme.name]);
      }
      expectStatus(await platform.rest.patch(configuration(of), { parameters: accepted }), 200);
      const together = Object.entries(accepted).map(([name, value]) => `${name} = ${value}`);
      await backedUp(of, together);
      await runs(of, together.join(", "));
      await reset(of, Object.keys(accepted));
      await runs(of, "the defaults");
    }
  }

  const live = (engine: string, version: string, end: 0 | -1) =>
    [...parametersOf(engine, version).values()]
      .filter(({ name, needsRestart }) => !needsRestart && !testedElsewhere.some((pattern) => pattern.test(name)))
      .flatMap((parameter) => extremesOf(parameter).at(end) ?? []);

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
});
