import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import type { ComputeProvider } from "@holdfast/compute/compute-provider.ts";
import type { Log } from "@holdfast/common/log.ts";

/** Fencing of machines by their hosts, so that a failover need not wait until the lease of the old primary expires. */
export interface FenceOrders {
  /**
   * Orders the machine's host to end all processes of the machine, and waits at most 400 ms. True if the host has
   * confirmed that no process remains; the caller calls again until then. `fact` identifies the reason: an order is
   * sent once for each fact, and again after a failure, such as a silent host. Every controller must refuse the machine
   * its lease before the first call, so that processes that start later get no lease.
   */
  fence(fact: string, machineId: string): Promise<boolean>;
}

export interface FenceOrdersDeps {
  readonly provider: Pick<ComputeProvider, "fence">;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly log: Log;
}

/** Maximum wait of one call for the result of an order. */
const waitTimeoutMs = 400;
const orderTimeoutMs = 20_000;
/** Delay until a failed order is repeated: callers call many times a second. */
const retryDelayMs = 2_000;
const maxFacts = 1_000;

interface FenceOrder {
  state: "ordered" | "ended" | "failed";
  readonly completion: Promise<void>;
  /** Time of the next attempt after a failure, by the monotonic clock. */
  retryAtMs: number;
}

export function createFenceOrders({ provider, clock, log }: FenceOrdersDeps): FenceOrders {
  const orders = new Map<string, FenceOrder>();

  function order(fact: string, machineId: string, before: FenceOrder | undefined): FenceOrder {
    const completion = provider.fence(machineId, AbortSignal.timeout(orderTimeoutMs)).then(
      () => {
        log.info("machine fenced", { machine: machineId });
        entry.state = "ended";
      },
      (error: unknown) => {
        const level = before === undefined ? "warn" : "debug";
        log[level]("machine not fenced", { machine: machineId, error: String(error) });
        entry.state = "failed";
        entry.retryAtMs = clock.monotonicMs() + retryDelayMs;
      },
    );
    const entry: FenceOrder = { state: "ordered", completion, retryAtMs: 0 };
    orders.set(fact, entry);
    // Orders for deleted services are not removed otherwise, so the oldest are evicted.
    if (orders.size > maxFacts) for (const [oldest] of [...orders].slice(0, maxFacts / 10)) orders.delete(oldest);
    return entry;
  }

  return {
    async fence(fact, machineId) {
      const existing = orders.get(fact);
      const isDue =
        existing === undefined || (existing.state === "failed" && clock.monotonicMs() >= existing.retryAtMs);
      const entry = isDue ? order(fact, machineId, existing) : existing;
      if (entry.state === "ordered") await Promise.race([entry.completion, sleep(waitTimeoutMs)]);
      return entry.state === "ended";
    },
  };
}
