import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import type { ComputeProvider } from "@holdfast/compute/compute-provider.ts";
import type { Log } from "@holdfast/common/log.ts";

/** Machines that their hosts were told to end, so that nobody has to wait for a right to lapse. */
export interface FenceOrders {
  /**
   * Has the machine's host end all of it, once for each fact, and resolves soon: has its host said since this was asked
   * first that nothing of the machine is left? A host that is silent, or does not know the machine, proves nothing, and
   * is told again after a moment. The caller has every controller refuse the machine its right first: whatever is
   * started of it afterwards can have none.
   */
  isEnded(fact: string, machineId: string): Promise<boolean>;
}

export interface FenceOrdersDeps {
  readonly provider: Pick<ComputeProvider, "fence">;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly log: Log;
}

/** The caller looks again: what takes longer is known then. */
const patienceMs = 400;
const orderWithinMs = 20_000;
/** A service that waits for the order looks many times a second. */
const againAfterMs = 2_000;
const mostFacts = 1_000;

interface FenceOrder {
  state: "ordered" | "ended" | "failed";
  readonly done: Promise<void>;
  /** When one that failed is given again. */
  againAtMs: number;
}

export function createFenceOrders({ provider, clock, log }: FenceOrdersDeps): FenceOrders {
  const orders = new Map<string, FenceOrder>();

  function order(fact: string, machineId: string, before: FenceOrder | undefined): FenceOrder {
    const done = provider.fence(machineId, AbortSignal.timeout(orderWithinMs)).then(
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
    const entry: FenceOrder = { state: "ordered", done, againAtMs: 0 };
    orders.set(fact, entry);
    // Those of services that are gone: the oldest go first.
    if (orders.size > mostFacts) for (const [oldest] of [...orders].slice(0, mostFacts / 10)) orders.delete(oldest);
    return entry;
  }

  return {
    async isEnded(fact, machineId) {
      const known = orders.get(fact);
      const isDue = known === undefined || (known.state === "failed" && clock.monotonicMs() >= known.againAtMs);
      const entry = isDue ? order(fact, machineId, known) : known;
      if (entry.state === "ordered") await Promise.race([entry.done, sleep(patienceMs)]);
      return entry.state === "ended";
    },
  };
}
