import { expect } from "vitest";
import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Extreme } from "./extremes.ts";

interface ParameterJson {
  readonly value: string;
  readonly status: string;
  readonly reason: string | null;
}

interface ConfigurationJson extends ProblemJson {
  readonly parameters: Readonly<Record<string, ParameterJson>>;
}

interface Health {
  readonly status: string;
}

/** A service whose parameters are set to their limits, through the API. */
export interface WalkedService {
  readonly id: string;
  /** Path below the service. */
  path(rest: string): string;
  /** Resolves with the stored value: the greatest for the plan in place of one that does not fit it. */
  set(extreme: Extreme): Promise<string | undefined>;
  /** Stores all values by one request. */
  setAll(values: Readonly<Record<string, string | null>>): Promise<void>;
  reset(names: readonly string[]): Promise<void>;
  /** Resolves once the engine runs with these; throws when it rejects one. */
  applied(values: Readonly<Record<string, string>>): Promise<void>;
  /** Resolves once the service is Running and healthy. */
  runs(under: string): Promise<void>;
  /** Expects that a backup completes, and deletes it; `under` describes the values. */
  backedUp(under: string): Promise<void>;
}

const wait = { withinMs: 60_000, everyMs: 50 };

export function createWalkedService(
  platform: Platform,
  services: Services,
  { service }: RunningService,
): WalkedService {
  const { id } = service;
  const path = (rest: string) => `/managed-services/${id}${rest}`;
  const configuration = path("/configuration");
  const patch = (parameters: Readonly<Record<string, string | null>>) =>
    platform.rest.patch<ConfigurationJson>(configuration, { parameters });

  const fixture: WalkedService = {
    id,
    path,
    async set({ name, value }) {
      const response = await patch({ [name]: value });
      if (response.status !== 400) return expectStatus(response, 200) && value;
      const [fault] = response.json.errors;
      expect(response.json.errors).toMatchObject([{ code: "exceeds_plan" }]);
      expect(fault?.detail).toContain(name);
      const greatest = /it is (\S+) at most/.exec(fault?.detail ?? "")?.[1];
      if (greatest === undefined) return undefined;
      await fixture.setAll({ [name]: greatest });
      return greatest;
    },
    async setAll(values) {
      expectStatus(await patch(values), 200);
    },
    reset: (names) => fixture.setAll(Object.fromEntries(names.map((name) => [name, null]))),
    async applied(values) {
      let last: ConfigurationJson["parameters"] = {};
      const isApplied = async () => {
        last = expectStatus(await platform.rest.get<ConfigurationJson>(configuration), 200).json.parameters;
        const compared = Object.entries(values).map(([name, value]) => ({ name, value, is: last[name] }));
        const rejected = compared.find(({ is }) => is?.status === "rejected");
        if (rejected !== undefined) throw new Error(`${rejected.name} is rejected: ${rejected.is?.reason}`);
        return compared.every(({ value, is }) => is?.status === "applied" && is.value === value);
      };
      await waitUntil("the parameters are applied", isApplied, {
        ...wait,
        describe: async () =>
          `${JSON.stringify(Object.keys(values).map((name) => [name, last[name]]))}\n${await services.describe(id)}`,
      });
    },
    async runs(under) {
      await services.settled(id, "Running");
      let last: Health | undefined;
      const isHealthy = async () => {
        last = expectStatus(await platform.rest.get<Health>(path("/health")), 200).json;
        return last.status === "healthy";
      };
      const describe = async () => `${JSON.stringify(last)}\n${await services.describe(id)}`;
      await waitUntil(`the service is healthy under ${under}`, isHealthy, { ...wait, describe });
    },
    async backedUp(under) {
      const started = expectStatus(await platform.rest.post<{ id: string }>(path("/backups"), {}), 202).json;
      const read = async () =>
        expectStatus(
          await platform.rest.get<{ status: string; error_message: string | null }>(path(`/backups/${started.id}`)),
          200,
        ).json;
      const isFinished = async () => /completed|failed/.test((await read()).status);
      await waitUntil(`a backup under ${under} has ended`, isFinished, wait);
      expect({ under, ...(await read()) }).toMatchObject({ under, status: "completed", error_message: null });
      expectStatus(await platform.rest.delete(path(`/backups/${started.id}`)), 204);
    },
  };
  return fixture;
}

/** Values as text for the description of a wait: `a = 1, b = 2`. */
export function printValues(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name} = ${value}`)
    .join(", ");
}
