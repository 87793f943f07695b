import { topologyOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Topology } from "@holdfast/common/engine-catalog/engine-row.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import type { MemberStrategy } from "./member-strategy.ts";
import { peers } from "./peers/peers.ts";
import { primaryReplicas } from "./primary-replicas/primary-replicas.ts";

const byTopology: Readonly<Record<Topology, MemberStrategy>> = {
  primary_replicas: primaryReplicas,
  peers,
};

/** The strategy of the service's topology. */
export function strategyOf({ spec }: Pick<ManagedServiceObject, "spec">): MemberStrategy {
  return byTopology[topologyOf(spec.databaseType)];
}
