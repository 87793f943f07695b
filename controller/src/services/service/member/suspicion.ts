import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { HeardRight } from "#fleet/session/rights.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import type { ObservedService } from "../observed-service.ts";
import { vouchersOf } from "./members.ts";

/** Requests come each second, so a pause of three is nothing. */
export const silentAfterMs = 4_500;
/** A replica that heard nothing from its primary for so long is a witness. */
export const deafAfterMs = 3_000;

/** What a replica says of its primary. */
export interface Witness {
  readonly streaming: boolean;
  /** Since anything came from it. */
  readonly silentMs: number;
}

/** Pure: the members that may be named after a primary that fell silent: its agent counts them among its vouchers. */
export function successorsOf(service: ManagedServiceObject, observed: ObservedService): NodeSpec[] {
  const primary = observed.nodes.find(({ node }) => node.id === service.status.primaryNodeId);
  return vouchersUnder(service, fencedGenerationOf(primary?.instance));
}

/** Pure: from these settings on the engine of a primary ends with its right; 0 for never. */
export function fencedGenerationOf(primary: InstanceObservation | undefined): number {
  return Number(primary?.replication?.fencedGeneration ?? 0n);
}

/** Pure: the vouchers that a primary is certain to count, whose engine ends with its right from these settings on; 0 for never. */
export function vouchersUnder(service: ManagedServiceObject, fenced: number): NodeSpec[] {
  if (fenced === 0) return [];
  // What was written with the settings that it runs by now was there before it took them.
  return vouchersOf(service).filter(({ vouches = Number.POSITIVE_INFINITY }) => vouches <= fenced);
}

/** Pure: would another member take the place of a primary that fell silent now? */
export function mayFailOver(service: ManagedServiceObject, observed: ObservedService): boolean {
  const { metadata, spec, status } = service;
  if (status.state !== "Running" || spec.power !== "on" || metadata.deletionRequestedAt !== undefined) return false;
  if (spec.succession !== undefined || spec.trial !== undefined) return false;
  return successorsOf(service, observed).length > 0;
}

/** Pure: is there reason to ask the replicas? `heard`: what the primary's agent was heard to say, undefined for nothing yet. */
export function isSuspect(heard: Pick<HeardRight, "askedAgoMs" | "isEngineSilent"> | undefined): boolean {
  return heard !== undefined && (heard.isEngineSilent || heard.askedAgoMs >= silentAfterMs);
}

/**
 * Pure: is a suspect primary given up? The agent's own verdict on its engine is enough; where the agent is silent, somebody
 * has to say that the engine is, too, and nobody may hear from it.
 */
export function isConfirmed(heard: Pick<HeardRight, "isEngineSilent">, witnesses: readonly Witness[]): boolean {
  if (witnesses.length === 0) return false;
  if (heard.isEngineSilent) return true;
  return witnesses.every(({ streaming, silentMs }) => !streaming || silentMs > deafAfterMs);
}
