import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { ControllerCalls } from "./controller-calls.ts";
import type { PrimaryLeases } from "./primary-leases.ts";

/** Revokes primary leases at all controllers that may have granted them. */
export interface Revocation {
  /**
   * Makes every controller refuse the machine primary leases under this term. Resolves with the milliseconds since the
   * last grant, or undefined while a controller has not confirmed. The machine must no longer be the primary in the
   * store, by which controllers that start later decide.
   */
  revoke(machineId: string, term: bigint, signal: AbortSignal): Promise<number | undefined>;
  close(): void;
}

export interface RevocationDeps {
  readonly controllerRegistry: Pick<ControllerRegistry, "id" | "controllers" | "controller" | "liveIds" | "subscribe">;
  readonly controllerCalls: Pick<ControllerCalls, "revokePrimaryLease">;
  readonly primaryLeases: Pick<PrimaryLeases, "revoke">;
  /** Milliseconds since boot, including time in suspend. */
  readonly bootMs: () => number;
}

const responseTimeoutMs = 1_000;
/** Time for which a departed controller counts, because leases that it granted may still be valid. */
const retentionMs = 60_000;

export function createRevocation({
  controllerRegistry,
  controllerCalls,
  primaryLeases,
  bootMs,
}: RevocationDeps): Revocation {
  const { id } = controllerRegistry;
  const startedMs = bootMs();
  /** Controllers that left or were restarted, with the time at which this controller detected it. */
  const departed = new Map<string, number>();
  let registered = new Map<string, number>();

  function refresh(): void {
    const now = bootMs();
    const present = new Map(controllerRegistry.controllers().map((each) => [each.id, each.startedAt]));
    for (const [each, startedAt] of registered)
      if (each !== id && present.get(each) !== startedAt) departed.set(each, now);
    for (const [each, at] of departed) if (now - at > retentionMs) departed.delete(each);
    registered = present;
  }
  const watch = controllerRegistry.subscribe(refresh);
  refresh();

  return {
    async revoke(machineId, term, signal) {
      const listed = await controllerRegistry.liveIds(signal);
      refresh();
      // A controller that is registered here and no longer listed has left since the last change of the registry.
      const hasLeft = [...registered.keys()].some((each) => each !== id && !listed.includes(each));
      const requests = listed
        .filter((each) => each !== id)
        .map(async (each) => {
          const address = controllerRegistry.controller(each)?.address;
          if (address === undefined || address === "") throw new Error(`controller ${each} has no address`);
          return controllerCalls.revokePrimaryLease(address, machineId, term, responseTimeoutMs);
        });
      const responses = await Promise.all(requests).catch(() => undefined);
      if (responses === undefined || hasLeft) return undefined;
      const now = bootMs();
      // Controllers that left before this one started are unknown, so no more than its uptime is proven.
      const since = [now - startedMs, ...[...departed.values()].map((at) => now - at)];
      return Math.min(primaryLeases.revoke(machineId, term), ...responses, ...since);
    },
    close: () => watch.close(),
  };
}
