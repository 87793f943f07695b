import type { ReadReplicationResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "../observed-service.ts";
import { askReplication } from "./ask-replication.ts";
import { isPrimary, numberOf, standbysOf } from "./members.ts";
import type { Pulse } from "./pulse.ts";
import { deafAfterMs, fencedGenerationOf, isSuspect } from "./suspicion.ts";

type Told = Pick<ReadReplicationResult, "role" | "streaming" | "silentMs" | "history" | "peers">;

/** A replica that does not follow for longer keeps nobody waiting. */
export const awayAfterMs = 30_000;

/** Where each of these is still to be proven is asked again after so long. */
export const provenAgainMs = 2_000;

/**
 * The replicas without a vote that follow by what they told last, proven or not. A replica that stood still tells of what was before
 * that, so both ends are asked now: the primary has to know it as one that receives.
 */
export async function withProvenReplicas(
  service: ManagedServiceObject,
  observed: ObservedService,
  deps: { readonly fleet: Pick<Fleet, "run">; readonly pulse: Pick<Pulse, "heard"> },
  signal: AbortSignal,
): Promise<ObservedService> {
  const candidates = votersToBe(service, observed);
  const { primaryNodeId } = service.status;
  // A suspect primary is not waited for.
  const heard = candidates.length === 0 ? undefined : deps.pulse.heard(primaryNodeId);
  if (heard === undefined || isSuspect(heard)) return observed;
  const ids = [primaryNodeId, ...candidates.map(({ node }) => node.id)];
  const answers = await Promise.all(ids.map((id) => askReplication(service, id, deps, signal)));
  const told = new Map(ids.map((id, index) => [id, answers[index]]));
  const nodes = observed.nodes.map((each) =>
    candidates.includes(each) && isProven(each.node, told.get(primaryNodeId), told.get(each.node.id))
      ? { ...each, isProven: true as const }
      : each,
  );
  return { ...observed, nodes };
}

/** Pure: the replicas that have no vote, and would have one if they are proven to follow. */
export function votersToBe(service: ManagedServiceObject, observed: ObservedService): ObservedNode[] {
  if (!votesChange(service, observed)) return [];
  const ids = standbysOf(service).flatMap(({ id, vouches }) => (vouches === undefined ? [id] : []));
  return observed.nodes.filter((each) => ids.includes(each.node.id) && follows(each));
}

/** Pure: may replicas get and lose votes now? Its primary is there to hear of it, and ends with its right. None does while an image is tried. */
export function votesChange(service: ManagedServiceObject, observed: ObservedService): boolean {
  const primary = observed.nodes.find(({ node }) => isPrimary(service, node));
  const isThere = primary?.connected === true && fencedGenerationOf(primary.instance) > 0;
  return service.spec.succession === undefined && service.spec.trial === undefined && isThere;
}

/** Pure: does the replica receive what its primary writes, by what both said just now? */
export function isProven(node: NodeSpec, primary: Told | undefined, own: Told | undefined): boolean {
  if (primary?.role !== "primary" || own?.role !== "replica") return false;
  const peer = primary.peers.find(({ number }) => number === numberOf(node));
  const hears = own.streaming && Number(own.silentMs) < deafAfterMs;
  return hears && peer?.state === "streaming" && own.history === primary.history;
}

/** Does the replica receive what its primary writes, by what its agent told last? */
export function follows({ connected, isCurrent, instance }: ObservedNode): boolean {
  const state = instance?.replication?.state;
  return connected && isCurrent && instance?.state === "running" && (state === "streaming" || state === "catchup");
}
