import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { LeaseReport } from "#fleet/session/primary-leases.ts";
import type { ManagedServiceObject, NodeSpec } from "../../../managed-service.ts";
import type { ObservedService } from "../../../reconcile/observed-service.ts";
import { failoverCandidatesOf } from "../primary.ts";

/** Age of the last lease request from which a primary is silent. Requests arrive each second; 3 s gaps are normal. */
export const silentAfterMs = 4_500;
/** Time without any data from the primary after which a replica reports it as silent. */
export const replicationSilentAfterMs = 3_000;

/** A replica's report about its primary. */
export interface PrimaryReport {
  readonly streaming: boolean;
  /** Milliseconds since the last data from the primary. */
  readonly silentMs: number;
}

/** The failover candidates that the primary's agent certainly counts as voters. */
export function countedCandidatesOf(service: ManagedServiceObject, observed: ObservedService): NodeSpec[] {
  const primary = observed.nodes.find(({ node }) => node.id === service.status.primaryNodeId);
  return candidatesCountedAt(service, fencedGenerationOf(primary?.instance));
}

/** First generation of settings under which the primary's engine stops when its lease expires; 0: it does not. */
export function fencedGenerationOf(primary: InstanceObservation | undefined): number {
  return Number(primary?.replication?.fencedGeneration ?? 0n);
}

/** The failover candidates that the primary's agent counts under settings of generation `fenced`; none if it is 0. */
export function candidatesCountedAt(service: ManagedServiceObject, fenced: number): NodeSpec[] {
  if (fenced === 0) return [];
  // The agent counts a candidate that was stored before the agent applied settings of this generation.
  return failoverCandidatesOf(service).filter(
    ({ failoverCandidate = Number.POSITIVE_INFINITY }) => failoverCandidate <= fenced,
  );
}

/** True if a failover candidate would replace a primary that falls silent now. */
export function canFailOver(service: ManagedServiceObject, observed: ObservedService): boolean {
  const { metadata, spec, status } = service;
  if (status.state !== "Running" || spec.power !== "on" || metadata.deletionRequestedAt !== undefined) return false;
  if (spec.primaryChange !== undefined || spec.canary !== undefined) return false;
  return countedCandidatesOf(service, observed).length > 0;
}

/**
 * True if the primary is suspect, so that replicas should be queried. `leaseReport`: the last lease request of
 * its agent; undefined before the first.
 */
export function isSuspect(
  leaseReport: Pick<LeaseReport, "requestedAgoMs" | "isEngineUnresponsive"> | undefined,
): boolean {
  return leaseReport !== undefined && (leaseReport.isEngineUnresponsive || leaseReport.requestedAgoMs >= silentAfterMs);
}

/**
 * True if the failure of a suspect primary is confirmed. The agent's own report of a silent engine suffices; if
 * the agent is silent, a replica must have responded, and none may receive data from the primary.
 */
export function isFailureConfirmed(
  leaseReport: Pick<LeaseReport, "isEngineUnresponsive">,
  primaryReports: readonly PrimaryReport[],
): boolean {
  if (primaryReports.length === 0) return false;
  if (leaseReport.isEngineUnresponsive) return true;
  return primaryReports.every(({ streaming, silentMs }) => !streaming || silentMs > replicationSilentAfterMs);
}
