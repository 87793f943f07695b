import type { ReachRule } from "@holdfast/compute/compute-provider.ts";

/** A kind of object that says who may reach its machines, or what all machines may reach. */
export interface ReachOwner {
  /** Its rules at the edge of one host. What no owner allows is denied. */
  rulesOn(hostId: string): readonly ReachRule[];
  /** Calls back with the hosts whose rules may differ; with none when those of all may. */
  subscribe(onChange: (hostIds?: ReadonlySet<string>) => void): { close(): void };
}
