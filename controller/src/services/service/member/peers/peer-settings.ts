import { create } from "@bufbuild/protobuf";
import { type Peers, PeersSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { privateNameOf } from "#fleet/zone/dns-record.ts";
import type { SpecArgs } from "../../spec-args.ts";
import { numberOf } from "../members.ts";
import { leavingOf } from "./peer-plan.ts";

/** The part of a member's instance spec that describes its cluster. */
export function peersOf({ service, node, addressOf, replicationSecret: secret }: SpecArgs): Peers {
  const { metadata, spec } = service;
  return create(PeersSchema, {
    // A service that is recreated from a backup is a new cluster.
    clusterId: spec.origin?.restoreId ?? metadata.id,
    secret,
    form: node.forms === true,
    leaving: leavingOf(service).map(numberOf),
    othersRun: spec.power === "on" && metadata.deletionRequestedAt === undefined,
    members: spec.nodes.map((member) => ({
      nodeId: member.id,
      number: numberOf(member),
      hostname: privateNameOf(member.hostname),
      publicHostname: member.hostname,
      address: addressOf(member.id),
    })),
  });
}
