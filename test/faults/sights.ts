import { setTimeout as sleep } from "node:timers/promises";
import type { Platform } from "../support/platform/platform.ts";
import type { PageJson, ServiceJson } from "../support/api/service-json.ts";
import { waitUntil } from "../support/wait-until.ts";

/** What a user of the API was shown of a service, from a moment on. */
export interface Sight {
  /** When it was shown first. */
  readonly at: number;
  /** When it was shown last. */
  lastAt: number;
  readonly status: string;
  /** Of its only node. */
  readonly node: string;
  readonly health: string;
  readonly reason: string;
  /** Names of the checks that are not healthy. */
  readonly ill: readonly string[];
  /** Some operation is in progress. */
  readonly busy: boolean;
}

/** Somebody who looks at all services all the time, by one request. */
export interface Sights {
  /** Whatever was shown of the service since then. */
  since(id: string, at: number): readonly Sight[];
  /** Milliseconds from `at` until the service was first shown so. */
  until(id: string, what: string, at: number, is: (sight: Sight) => boolean, withinMs?: number): Promise<number>;
  close(): Promise<void>;
}

const everyMs = 250;
/** What is promised is 15 s on a quiet machine; figures are printed, and this is for busy ones. */
const usuallyWithinMs = 60_000;

export function watchSights(platform: Platform): Sights {
  const sights = new Map<string, Sight[]>();
  const end = new AbortController();

  async function look(): Promise<void> {
    const at = Date.now();
    const { status, json } = await platform.rest.get<PageJson<"services", ServiceJson>>("/managed-services?limit=200");
    if (status !== 200) return;
    for (const service of json.services) {
      const sight = sightOf(service, at);
      const seen = sights.get(service.id) ?? [];
      sights.set(service.id, seen);
      const last = seen.at(-1);
      if (last !== undefined && JSON.stringify({ ...last, at, lastAt: at }) === JSON.stringify(sight)) last.lastAt = at;
      else seen.push(sight);
    }
  }

  async function run(): Promise<void> {
    while (!end.signal.aborted) {
      // A controller that is away shows nothing.
      await look().catch(() => undefined);
      await sleep(everyMs, undefined, { signal: end.signal }).catch(() => undefined);
    }
  }
  const running = run();

  const since = (id: string, at: number) => (sights.get(id) ?? []).filter(({ lastAt }) => lastAt >= at);

  return {
    since,
    async until(id, what, at, is, withinMs = usuallyWithinMs) {
      const found = await waitUntil(what, () => since(id, at).find((sight) => is(sight)), {
        withinMs,
        describe: () =>
          since(id, at)
            .map((sight) => `${sight.at - at} ms: ${JSON.stringify(sight)}`)
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

function sightOf({ status, nodes, health, operation }: ServiceJson, at: number): Sight {
  const ill = health.checks.filter((check) => check.status !== "healthy").map(({ name }) => name);
  const [node] = nodes;
  return {
    at,
    lastAt: at,
    status,
    node: node?.status ?? "",
    health: health.status,
    reason: health.reason ?? "",
    ill,
    busy: operation !== null,
  };
}
