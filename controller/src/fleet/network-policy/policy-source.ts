import type { PolicyRule } from "@holdfast/compute/compute-provider.ts";

/** A source of network policy rules: who may connect to some machines, or where all machines may connect to. */
export interface PolicySource {
  /** Its rules for one host. Connections that no rule of any source allows are denied. */
  rulesOn(hostId: string): readonly PolicyRule[];
  /** Calls back with the hosts whose rules may have changed; without an argument for all hosts. */
  subscribe(onChange: (hostIds?: ReadonlySet<string>) => void): { close(): void };
}
