import { setTimeout as sleep } from "node:timers/promises";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import type { PageJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

/** Status of a service as the API reported it, over a period. */
export interface StatusSample {
  /** Time of the first such response, in milliseconds since 1970. */
  readonly at: number;
  /** Time of the last such response, in milliseconds since 1970. */
  lastAt: number;
  readonly status: string;
  /** Status of its only node. */
  readonly node: string;
  readonly health: string;
  readonly reason: string;
  /** Names of the unhealthy checks. */
  readonly unhealthy: readonly string[];
  /** True while an operation is in progress. */
  readonly busy: boolean;
}

/** Polls the list of all services continuously. */
export interface StatusSampler {
  /** All statuses of the service since `at`. */
  since(id: string, at: number): readonly StatusSample[];
  /** Milliseconds from `at` until the service first had a matching status. */
  until(
    id: string,
    what: string,
    at: number,
    is: (sample: StatusSample) => boolean,
    withinMs?: number,
  ): Promise<number>;
  close(): Promise<void>;
}

const everyMs = 250;
/** The promise is 15 s on an idle machine; figures are printed, and this limit is for busy ones. */
const usuallyWithinMs = 60_000;

export function sampleStatuses(platform: Platform): StatusSampler {
  const samples = new Map<string, StatusSample[]>();
  const end = new AbortController();

  async function poll(): Promise<void> {
    const at = Date.now();
    const { status, json } = await platform.rest.get<PageJson<"services", ServiceJson>>("/managed-services?limit=200");
    if (status !== 200) return;
    for (const service of json.services) {
      const sample = sampleOf(service, at);
      const ofService = samples.get(service.id) ?? [];
      samples.set(service.id, ofService);
      const last = ofService.at(-1);
      if (last !== undefined && JSON.stringify({ ...last, at, lastAt: at }) === JSON.stringify(sample))
        last.lastAt = at;
      else ofService.push(sample);
    }
  }

  async function run(): Promise<void> {
    while (!end.signal.aborted) {
      // A controller that is down reports nothing.
      await poll().catch(() => undefined);
      // Time: the rate of the samples.
      await sleep(everyMs, undefined, { signal: end.signal }).catch(() => undefined);
    }
  }
  const running = run();

  const since = (id: string, at: number) => (samples.get(id) ?? []).filter(({ lastAt }) => lastAt >= at);

  return {
    since,
    async until(id, what, at, is, withinMs = usuallyWithinMs) {
      const found = await waitUntil(what, () => since(id, at).find((sample) => is(sample)), {
        withinMs,
        describe: () =>
          since(id, at)
            .map((sample) => `${sample.at - at} ms: ${JSON.stringify(sample)}`)
            .join("\n"),
      });
      return Math.max(0, found.at - at);
    },
    async close() {
      end.abort();
      await running;
    },
  };
}

function sampleOf({ status, nodes, health, operation }: ServiceJson, at: number): StatusSample {
  const unhealthy = health.checks.filter((check) => check.status !== "healthy").map(({ name }) => name);
  const [node] = nodes;
  return {
    at,
    lastAt: at,
    status,
    node: node?.status ?? "",
    health: health.status,
    reason: health.reason ?? "",
    unhealthy,
    busy: operation !== null,
  };
}
