import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import type { ComputeProvider } from "@holdfast/compute/compute-provider.ts";
import type { Log } from "@holdfast/common/log.ts";

/** Fencing of machines by their hosts, so that a failover need not wait until the lease of the old primary expires. */
export interface FenceOrders {
  /**
   * Orders the machine's host to end all processes of the machine, once for each fact, and resolves soon: true if the
   * host has confirmed since the first call that none remain. A host that is silent, or does not know the machine,
   * proves nothing; the order is repeated after a delay. Every controller must refuse the machine its lease first:
   * processes that start afterwards cannot get one.
   */
  isEnded(fact: string, machineId: string): Promise<boolean>;
}

export interface FenceOrdersDeps {
  readonly provider: Pick<ComputeProvider, "fence">;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly log: Log;
}

/** The caller checks again, so a longer order is awaited by a later call. */
const patienceMs = 400;
const orderWithinMs = 20_000;
/** A service that waits for the order checks many times a second. */
const againAfterMs = 2_000;
const maxFacts = 1_000;

interface FenceOrder {
  state: "ordered" | "ended" | "failed";
  readonly completion: Promise<void>;
  /** Time of the next attempt after a failure, by the monotonic clock. */
  againAtMs: number;
}

export function createFenceOrders({ provider, clock, log }: FenceOrdersDeps): FenceOrders {
  const orders = new Map<string, FenceOrder>();

  function order(fact: string, machineId: string, before: FenceOrder | undefined): FenceOrder {
    const completion = provider.fence(machineId, AbortSignal.timeout(orderWithinMs)).then(
      () => {
        log.info("machine fenced", { machine: machineId });
        entry.state = "ended";
      },
      (error: unknown) => {
        const level = before === undefined ? "warn" : "debug";
        log[level]("machine not fenced", { machine: machineId, error: String(error) });
        entry.state = "failed";
        entry.againAtMs = clock.monotonicMs() + againAfterMs;
      },
    );
    const entry: FenceOrder = { state: "ordered", completion, againAtMs: 0 };
    orders.set(fact, entry);
    // Entries of deleted services are never removed, so the oldest go first.
    if (orders.size > maxFacts) for (const [oldest] of [...orders].slice(0, maxFacts / 10)) orders.delete(oldest);
    return entry;
  }

  return {
    async isEnded(fact, machineId) {
      const existing = orders.get(fact);
      const isDue =
        existing === undefined || (existing.state === "failed" && clock.monotonicMs() >= existing.againAtMs);
      const entry = isDue ? order(fact, machineId, existing) : existing;
      if (entry.state === "ordered") await Promise.race([entry.completion, sleep(patienceMs)]);
      return entry.state === "ended";
    },
  };
}
