import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { PeerCalls } from "./peer-calls.ts";
import type { PrimaryLeases } from "./primary-leases.ts";

/** Revokes primary leases at all controllers that may have granted them. */
export interface Revocation {
  /**
   * Makes every controller refuse the machine primary leases under this term. Resolves with the milliseconds since the
   * last grant, or undefined while a controller has not confirmed. The machine must no longer be the primary in the
   * store, from which controllers that start later decide.
   */
  revoke(machineId: string, term: bigint, signal: AbortSignal): Promise<number | undefined>;
  close(): void;
}

export interface RevocationDeps {
  readonly controllerRegistry: Pick<ControllerRegistry, "id" | "controllers" | "controller" | "liveIds" | "subscribe">;
  readonly peers: Pick<PeerCalls, "revokeRight">;
  readonly primaryLeases: Pick<PrimaryLeases, "revoke">;
  /** Milliseconds since boot, time in suspend included. */
  readonly bootMs: () => number;
}

const answerWithinMs = 1_000;
/** Time that a departed controller is remembered, because leases that it granted may still be valid. */
const retentionMs = 60_000;

export function createRevocation({ controllerRegistry, peers, primaryLeases, bootMs }: RevocationDeps): Revocation {
  const { id } = controllerRegistry;
  const begunMs = bootMs();
  /** Controllers that left or were restarted, with the time at which this was noticed. */
  const departed = new Map<string, number>();
  let seen = new Map<string, number>();

  function refresh(): void {
    const now = bootMs();
    const there = new Map(controllerRegistry.controllers().map((each) => [each.id, each.startedAt]));
    for (const [each, startedAt] of seen) if (each !== id && there.get(each) !== startedAt) departed.set(each, now);
    for (const [each, at] of departed) if (now - at > retentionMs) departed.delete(each);
    seen = there;
  }
  const watch = controllerRegistry.subscribe(refresh);
  refresh();

  return {
    async revoke(machineId, term, signal) {
      const listed = await controllerRegistry.liveIds(signal);
      refresh();
      // A controller that was registered a moment ago and is no longer listed has only just left.
      const unlisted = [...seen.keys()].some((each) => each !== id && !listed.includes(each));
      const answering = listed
        .filter((each) => each !== id)
        .map(async (each) => {
          const address = controllerRegistry.controller(each)?.address;
          if (address === undefined || address === "") throw new Error(`controller ${each} has no address`);
          return peers.revokeRight(address, machineId, term, answerWithinMs);
        });
      const answers = await Promise.all(answering).catch(() => undefined);
      if (answers === undefined || unlisted) return undefined;
      const now = bootMs();
      // Controllers that left before this one started are unknown, so at most its own uptime is proven.
      const since = [now - begunMs, ...[...departed.values()].map((at) => now - at)];
      return Math.min(primaryLeases.revoke(machineId, term), ...answers, ...since);
    },
    close: () => watch.close(),
  };
}
