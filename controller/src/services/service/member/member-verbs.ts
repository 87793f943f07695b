import { topologyOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Topology } from "@holdfast/common/engine-catalog/engine-row.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import { peerVerbs } from "./peers/peer-verbs.ts";
import { primaryVerbs } from "./primary-replicas/primary-verbs.ts";
import type { MemberVerbs } from "./topology-verbs.ts";

const byTopology: Readonly<Record<Topology, MemberVerbs>> = { primary_replicas: primaryVerbs, peers: peerVerbs };

/** The member verbs of the service's topology. */
export function memberVerbsOf({ spec }: Pick<ManagedServiceObject, "spec">): MemberVerbs {
  return byTopology[topologyOf(spec.databaseType)];
}
