import type { MachineEdge } from "@holdfast/compute/compute-provider.ts";
import { again, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { PolicySource } from "./policy-source.ts";

export interface NetworkPolicyDeps {
  /** Firewalls of the hosts with a network of their machines, by host id. */
  readonly edges: () => ReadonlyMap<string, MachineEdge>;
  readonly sources: readonly PolicySource[];
}

/** Interval at which the rules are applied again, which corrects changes by other programs on the host. */
const reapplyIntervalMs = 60_000;

/** Applies the rules of all sources to each host's firewall, as one rule set. Key: host id. */
export function createNetworkPolicyWork({ edges, sources }: NetworkPolicyDeps): ControlLoop {
  return {
    reconciler: {
      name: "network-policy",
      async reconcile(hostId, signal) {
        const edge = edges().get(hostId);
        if (edge === undefined) return settled;
        await edge.apply(
          sources.flatMap((source) => source.rulesOn(hostId)),
          signal,
        );
        return again(reapplyIntervalMs, "drift");
      },
    },
    keys: () => edges().keys(),
    subscribe(onChange) {
      const changed = (hostIds?: ReadonlySet<string>) => {
        for (const hostId of edges().keys()) if (hostIds?.has(hostId) !== false) onChange(hostId);
      };
      const watches = sources.map((source) => source.subscribe(changed));
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
    concurrency: 4,
  };
}
