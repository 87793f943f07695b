import type { Clock } from "@holdfast/common/clock.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { managedServiceKind, type ManagedServiceObject, type PrimaryChange } from "../../managed-service.ts";
import type { ObservedService } from "../../reconcile/observed-service.ts";
import type { FailureDetector } from "./failover/failure-detector.ts";
import { tryReadReplication } from "./replication/read-replication.ts";
import type { FenceOrders } from "./failover/fence-orders.ts";
import {
  type Candidate,
  candidateOf,
  fenceVerdict,
  shouldFence,
  type LeaseState,
  type ReplicaResponse,
} from "./failover/fence-verdict.ts";
import { hasReplayedBeyond, positionsOf } from "./replication/log-position.ts";
import { replicationModeOf, syncStandbysOf } from "./replication/sync-standbys.ts";
import { countedCandidatesOf } from "./failover/suspicion.ts";
import {
  withNamedPrimary,
  withoutNamedPrimary,
  primaryChangeVerdict,
  oldPrimaryState,
  oldPrimaryLogEnd,
} from "./primary-change.ts";
import { type PrimaryChangeVerdict, replayTimeoutMs } from "./primary-change-plan.ts";
import { failoverCandidatesOf, standbysOf } from "./primary.ts";

export interface PrimaryChangeDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Pick<Collection<unknown>, "untilRevision">;
  readonly fleet: Pick<Fleet, "run" | "revokePrimaryLease">;
  readonly failureDetector: Pick<FailureDetector, "leaseReport" | "trueForMs" | "forget">;
  readonly fences: FenceOrders;
  readonly machines: Pick<Collection<MachineObject>, "get">;
  readonly clock: Clock;
}

/**
 * Performs the next step of the primary change, as `primary-change-plan.ts` decides it. The new primary is named once
 * it has replayed the last record of the old primary's log. Each naming raises the term, because agents may already
 * have received the previous one.
 */
export async function changePrimary(
  service: Stored<ManagedServiceObject>,
  observed: ObservedService,
  deps: PrimaryChangeDeps,
  signal: AbortSignal,
): Promise<void> {
  const { object } = service;
  const { primaryChange } = object.spec;
  const now = deps.clock.now();
  const planned = primaryChangeVerdict(object, observed, now);
  if (primaryChange === undefined || planned === undefined || planned === "wait") return;
  // `updateMembers` writes the step `settle` together with its event.
  if (planned === "settle") return;
  if (planned === "fence") return nameSuccessor(service, primaryChange, observed, deps, signal);
  const replay = `replay ${object.metadata.id}/${object.spec.instanceGeneration}`;
  const replayedForMs = planned === "compare" ? deps.failureDetector.trueForMs(replay) : 0;
  let verdict: typeof planned = planned;
  if (planned === "compare" && !(await hasReplayedAll(object, primaryChange, observed, deps, signal))) {
    if (replayedForMs <= replayTimeoutMs) return;
    verdict = "revert";
  }
  const unit = deps.begin();
  unit.update(managedServiceKind, service, afterVerdict(object, primaryChange, verdict, now));
  await deps.services.untilRevision(await unit.commit(signal), 1_000);
  deps.failureDetector.forget(replay);
}

function afterVerdict(
  service: ManagedServiceObject,
  { from, to }: PrimaryChange,
  verdict: Exclude<PrimaryChangeVerdict, "wait" | "settle" | "fence">,
  now: number,
): ManagedServiceObject {
  if (verdict === "recall") return withoutNamedPrimary(service, now);
  if (verdict === "revert") return withNamedPrimary(service, from, now);
  return withNamedPrimary(service, to, now, verdict === "resume" ? { hasPromoted: true } : {});
}

/** Names the most advanced replica once it is certain that the silent primary takes no writes. */
async function nameSuccessor(
  service: Stored<ManagedServiceObject>,
  { from, forced }: PrimaryChange,
  observed: ObservedService,
  deps: PrimaryChangeDeps,
  signal: AbortSignal,
): Promise<void> {
  const { object } = service;
  const { failureDetector, fleet, clock } = deps;
  const fact = `fence ${object.metadata.id}/${object.spec.instanceGeneration}`;
  const revokedForMs = failureDetector.trueForMs(fact);
  // Controllers are queried after the revocation was stored: a controller that starts later reads it from the store.
  const ungrantedForMs = await fleet.revokePrimaryLease(from, object.status.term, signal).catch(() => undefined);
  const needed = requiredReplicas(object, observed);
  const neverLapses = deps.machines.get(from)?.object.spec.kind === "virtual_machine";
  const lease: LeaseState = { revokedForMs, ungrantedForMs, neverExpires: neverLapses };
  /** The verdict by the current positions of the candidates. */
  const decide = async (isProven: boolean) => {
    const candidates = await queryCandidates(object, observed, needed ?? [], deps, signal);
    const verdictBy = (state: LeaseState) =>
      fenceVerdict(oldPrimaryState(object, observed), state, candidates, positionsOf(object), needed, forced);
    return { verdict: verdictBy({ ...lease, isProven }), ifProven: verdictBy({ ...lease, isProven: true }) };
  };
  let { verdict, ifProven } = await decide(false);
  // Do not fence the machine while no candidate can replace it: it may still return as the primary.
  if (
    verdict.kind !== "name" &&
    ifProven.kind === "name" &&
    shouldFence(lease, failureDetector.leaseReport(from)?.requestedAgoMs ?? 0) &&
    (await deps.fences.fence(fact, from))
  )
    ({ verdict } = await decide(true));
  if (verdict.kind === "wait") return;
  const to = verdict.kind === "revert" ? from : verdict.nodeId;
  const unit = deps.begin();
  unit.update(managedServiceKind, service, withNamedPrimary(object, to, clock.now()));
  await deps.services.untilRevision(await unit.commit(signal), 1_000);
  failureDetector.forget(fact);
}

/** Replicas that together have every acknowledged commit; undefined if commits do not wait for replicas. */
function requiredReplicas(service: ManagedServiceObject, observed: ObservedService): readonly string[] | undefined {
  if (replicationModeOf(service.spec) === "async") return undefined;
  // The primary may never have applied settings by which its commits wait.
  if (service.spec.unconfirmedSyncGeneration !== undefined) return [];
  const old = observed.nodes.find(({ node }) => node.id === service.spec.primaryChange?.from);
  // The fence raised the generation by one. A primary without the previous generation may have waited for other
  // standbys.
  const isCurrent = Number(old?.instance?.generation ?? 0n) >= service.spec.instanceGeneration - 1;
  return (isCurrent ? syncStandbysOf(service) : standbysOf(service)).map(({ id }) => id);
}

/** Replication state of the replicas that may be named, and of replicas whose position is only compared. */
async function queryCandidates(
  service: ManagedServiceObject,
  observed: ObservedService,
  needed: readonly string[],
  deps: PrimaryChangeDeps,
  signal: AbortSignal,
): Promise<readonly Candidate[]> {
  const { forced } = service.spec.primaryChange ?? {};
  const counted = countedCandidatesOf(service, observed).map(({ id }) => id);
  const candidateIds = failoverCandidatesOf(service).map(({ id }) => id);
  const ids = [...new Set([...candidateIds, ...needed, ...(forced === undefined ? [] : [forced])])];
  const responses = await Promise.all(ids.map((id) => queryReplica(service, id, deps, signal)));
  return responses
    .flatMap((response) => response ?? [])
    .map((response) => candidateOf(response, candidateIds, counted));
}

async function queryReplica(
  service: ManagedServiceObject,
  nodeId: string,
  deps: PrimaryChangeDeps,
  signal: AbortSignal,
): Promise<ReplicaResponse | undefined> {
  const response = await tryReadReplication(service, nodeId, deps, signal, { replacesPrimary: true });
  return response?.role === "replica" ? { ...response, nodeId } : undefined;
}

async function hasReplayedAll(
  service: ManagedServiceObject,
  { to }: PrimaryChange,
  observed: ObservedService,
  deps: PrimaryChangeDeps,
  signal: AbortSignal,
): Promise<boolean> {
  const end = oldPrimaryLogEnd(service, observed);
  const has =
    end === undefined ? undefined : await tryReadReplication(service, to, deps, signal, { replacesPrimary: true });
  return end !== undefined && has?.role === "replica" && hasReplayedBeyond(positionsOf(service), has, end);
}
