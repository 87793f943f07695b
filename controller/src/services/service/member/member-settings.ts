import { topologyOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Peers, Replication } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { SpecArgs } from "../spec-args.ts";
import { isReplicated } from "./members.ts";
import { peersOf } from "./peers/peer-settings.ts";
import { replicationOf } from "./primary-replicas/replication/replication-settings.ts";

/** The part of a member's instance spec that describes the other members, by the topology of the engine. */
export function memberSettingsOf(args: SpecArgs): { readonly peers: Peers } | { readonly replication?: Replication } {
  const { spec } = args.service;
  if (topologyOf(spec.databaseType) === "peers") return { peers: peersOf(args) };
  return isReplicated(spec) ? { replication: replicationOf(args) } : {};
}
