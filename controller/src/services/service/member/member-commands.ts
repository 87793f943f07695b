import { topologyOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Topology } from "@holdfast/common/engine-catalog/engine-row.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import { peerCommands } from "./peers/peer-commands.ts";
import { primaryCommands } from "./primary-replicas/primary-commands.ts";
import type { MemberCommands } from "./topology-commands.ts";

const byTopology: Readonly<Record<Topology, MemberCommands>> = {
  primary_replicas: primaryCommands,
  peers: peerCommands,
};

/** The member commands of the service's topology. */
export function memberCommandsOf({ spec }: Pick<ManagedServiceObject, "spec">): MemberCommands {
  return byTopology[topologyOf(spec.databaseType)];
}
