import type { MachineEdge } from "@holdfast/compute/compute-provider.ts";
import { again, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { ReachOwner } from "./reach-owner.ts";

export interface ReachDeps {
  /** Of each host where machines have networks of their own. */
  readonly edges: () => ReadonlyMap<string, MachineEdge>;
  readonly owners: readonly ReachOwner[];
}

/** What somebody else changed on the host is put right after so long. */
const applyAgainMs = 60_000;

/** Holds each host's edge to what the owners allow: all rules of a host as one. Key: host id. */
export function createReachWork({ edges, owners }: ReachDeps): ControlLoop {
  return {
    reconciler: {
      name: "reachability",
      async reconcile(hostId, signal) {
        const edge = edges().get(hostId);
        if (edge === undefined) return settled;
        await edge.apply(
          owners.flatMap((owner) => owner.rulesOn(hostId)),
          signal,
        );
        return again(applyAgainMs, "drift");
      },
    },
    keys: () => edges().keys(),
    subscribe(onChange) {
      const changed = (hostIds?: ReadonlySet<string>) => {
        for (const hostId of edges().keys()) if (hostIds?.has(hostId) !== false) onChange(hostId);
      };
      const watches = owners.map((owner) => owner.subscribe(changed));
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
    concurrency: 4,
  };
}
