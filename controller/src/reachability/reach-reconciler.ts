import type { MachineEdge } from "../compute/compute-provider.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { ManagedServiceObject } from "../managed-service/managed-service.ts";
import { again } from "../runtime/reconciler.ts";
import type { Reconciled } from "../runtime/runner.ts";
import type { Collection } from "../store/collection.ts";
import { reachRulesOf } from "./reach-rules.ts";

export interface ReachDeps {
  readonly edge: MachineEdge;
  readonly services: Collection<ManagedServiceObject>;
  readonly machines: Collection<MachineObject>;
}

const key = "reachability";
/** What somebody else changed on the host is put right after so long. */
const applyAgainMs = 60_000;

/** Holds the machines' edge to what their owners allow: all rules as one, whichever object changed. */
export function createReachWork({ edge, services, machines }: ReachDeps): Reconciled {
  return {
    reconciler: {
      name: key,
      async reconcile(_key, signal) {
        const objects = Iterator.from(services.values()).map(({ object }) => object);
        await edge.apply(
          reachRulesOf(objects, (id) => machines.get(id)?.object),
          signal,
        );
        return again(applyAgainMs, "drift");
      },
    },
    keys: () => [key],
    subscribe(onChange) {
      const watches = [services, machines].map((collection) => collection.subscribe(() => onChange(key)));
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
    concurrency: 1,
  };
}
