import type { MachineEdge } from "../compute/compute-provider.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { ManagedServiceObject } from "../managed-service/managed-service.ts";
import { again, settled } from "../runtime/reconciler.ts";
import type { Reconciled } from "../runtime/runner.ts";
import type { Collection } from "../store/collection.ts";
import type { Membership } from "../runtime/membership.ts";
import { controllerRulesOf, reachRulesOf } from "./reach-rules.ts";

export interface ReachDeps {
  /** Of each host where machines have networks of their own. */
  readonly edges: () => ReadonlyMap<string, MachineEdge>;
  readonly services: Collection<ManagedServiceObject>;
  readonly machines: Collection<MachineObject>;
  readonly membership: Pick<Membership, "members" | "subscribe">;
}

/** What somebody else changed on the host is put right after so long. */
const applyAgainMs = 60_000;

/** Holds each host's edge to what the owners of its machines allow, and opens it to the controllers: all rules as one, whichever object changed. Key: host id. */
export function createReachWork({ edges, services, machines, membership }: ReachDeps): Reconciled {
  return {
    reconciler: {
      name: "reachability",
      async reconcile(hostId, signal) {
        const edge = edges().get(hostId);
        if (edge === undefined) return settled;
        const objects = Iterator.from(services.values()).map(({ object }) => object);
        const rules = reachRulesOf(objects, hostId, (id) => machines.get(id)?.object);
        await edge.apply([...rules, ...controllerRulesOf(membership.members())], signal);
        return again(applyAgainMs, "drift");
      },
    },
    keys: () => edges().keys(),
    subscribe(onChange) {
      const all = () => {
        for (const hostId of edges().keys()) onChange(hostId);
      };
      const watches = [services, machines, membership].map((source) => source.subscribe(all));
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
    concurrency: 4,
  };
}
