import { create } from "@bufbuild/protobuf";
import { type Replication, ReplicationSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { privateNameOf } from "#fleet/zone/dns-record.ts";
import type { SpecArgs } from "../../../spec-args.ts";
import { numberOf } from "../../members.ts";
import { failoverCandidatesOf, namedPrimary, needsPrimaryLease } from "../primary.ts";
import { syncStandbysOf } from "./sync-standbys.ts";

/** The part of a member's instance spec that describes the other members and their replication. */
export function replicationOf({
  service,
  node,
  addressOf,
  replicationSecret: secret,
  leaseProtocol,
  running,
}: SpecArgs): Replication {
  const members = service.spec.nodes.filter(({ leaving }) => leaving !== true);
  const primaryNodeId = namedPrimary(service);
  return create(ReplicationSchema, {
    primaryNodeId,
    secret,
    underPrimaryLease: needsPrimaryLease(service, leaseProtocol) && primaryNodeId === node.id && members.length > 1,
    voters: failoverCandidatesOf(service).map(({ id }) => id),
    // During a canary commits do not wait for replicas, because replicas are pinned to the previous data.
    syncNumbers: service.spec.canary !== undefined && running ? [] : syncStandbysOf(service).map(numberOf),
    members: members.map((node) => ({
      nodeId: node.id,
      number: numberOf(node),
      hostname: privateNameOf(node.hostname),
      address: addressOf(node.id),
    })),
  });
}
