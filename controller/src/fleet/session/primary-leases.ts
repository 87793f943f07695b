import type { Log } from "@holdfast/common/log.ts";
import { primaryLeaseMs } from "@holdfast/common/primary-lease.ts";
import type { PrimaryLeaseRequest } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { definePart } from "#kernel/part.ts";
import type { AgentSession } from "./session.ts";

/** Time added to a primary lease's duration, for clock drift, a suspended keeper and the shutdown of an engine. */
export const primaryLeaseMarginMs = 2_000;
/** Maximum age of the cached objects by which a primary lease is granted. */
export const cacheMaxAgeMs = 3_000;

/** Decides whether a machine may be the primary of its service. */
export interface PrimaryLeaseRules {
  /**
   * The reason, by the cached objects, why the machine may not be the service's primary under this term; undefined if
   * it may. It has no side effects.
   */
  refusal(machineId: string, serviceId: string, term: number): string | undefined;
  /** Resolves when the cache has this revision. */
  untilRevision(revision: bigint, timeoutMs: number): Promise<void>;
}

export const primaryLeaseRulesPart = definePart<PrimaryLeaseRules>("rules of primary leases");

/** A machine's primary lease requests to this controller. */
export interface LeaseReport {
  /** Milliseconds since the last request. */
  readonly requestedAgoMs: number;
  /** Milliseconds since the last grant; undefined if this controller granted none. */
  readonly grantedAgoMs: number | undefined;
  /** True if the agent reports that its engine has been unresponsive for some seconds. */
  readonly isEngineUnresponsive: boolean;
}

/** The fields of a lease report that other controllers get. */
export type ControllerLeaseReport = Pick<LeaseReport, "requestedAgoMs" | "isEngineUnresponsive">;

/** The facts that decide a grant. */
export interface GrantContext {
  readonly hasLease: boolean;
  /** Milliseconds since the cache had everything that the store had. */
  readonly verifiedAgoMs: number;
  /** Reason of the rules why the machine may not be the primary; undefined if it may. */
  readonly refusal: string | undefined;
}

/** The reason why no lease is granted; undefined if one is granted. */
export function leaseRefusalOf({ hasLease, verifiedAgoMs, refusal }: GrantContext): string | undefined {
  if (!hasLease) return "this controller has no lease";
  return verifiedAgoMs < cacheMaxAgeMs ? refusal : "this controller's cache is too old";
}

/**
 * Grants primary leases to agents connected here. The agent of a primary requests a lease every second; it stops its
 * engine when its last lease expires. A lease is granted only by a controller that has an etcd lease itself and whose
 * cache was up to date within the last three seconds. Grants are not stored, so a failover first revokes leases at
 * every controller (`revocation.ts`) or waits until they have expired.
 */
export interface PrimaryLeases {
  /** Decides a request and responds on its stream. */
  request(session: Pick<AgentSession, "machineId" | "send">, request: PrimaryLeaseRequest): Promise<void>;
  /** Call it when the machine opened a stream here: its requests on an earlier stream are no longer overdue. */
  opened(machineId: string): void;
  /** The machine's requests; undefined without one in the last minute. */
  report(machineId: string): LeaseReport | undefined;
  /**
   * Refuses the machine leases under this term and earlier ones from now on. Returns the milliseconds for which this
   * controller has certainly granted none, including earlier processes with its id.
   */
  revoke(machineId: string, term: bigint): number;
  /** Machines with a request in the last minute whose next request is overdue, or whose engine is unresponsive. */
  suspects(): ReadonlyMap<string, LeaseReport>;
  /** Number of requests since the start, by outcome. */
  outcomes(): Iterable<readonly [outcome: LeaseOutcome, count: number]>;
}

/** Outcome of a request. Late: granted after half of the previous lease was over. */
export type LeaseOutcome = "granted" | "late" | "refused";

export interface PrimaryLeasesDeps {
  readonly rules: PrimaryLeaseRules | undefined;
  /** The store's current revision. */
  readonly revision: () => Promise<bigint>;
  readonly hasLease: () => boolean;
  /** Milliseconds since boot, including time in suspend. */
  readonly bootMs: () => number;
  /** Called when the machine's engine became unresponsive, or responsive again. */
  readonly onChange: (machineId: string) => void;
  readonly log: Log;
}

interface LeaseRecord {
  readonly requestedMs: number;
  readonly grantedMs: number | undefined;
  /** Term of the last grant. */
  readonly term: bigint;
  readonly isEngineUnresponsive: boolean;
}

const retentionMs = 60_000;
/** Time since the last request after which the next one is overdue. Requests arrive every second. */
export const requestOverdueMs = 1_500;
const revokedTermsMax = 10_000;

export function createPrimaryLeases(deps: PrimaryLeasesDeps): PrimaryLeases {
  const { rules, revision, hasLease, bootMs, onChange, log } = deps;
  const records = new Map<string, LeaseRecord>();
  const revokedTerms = new Map<string, bigint>();
  const startedMs = bootMs();
  const counts = new Map<LeaseOutcome, number>([
    ["granted", 0],
    ["late", 0],
    ["refused", 0],
  ]);
  /** Time at which the cache had everything that the store had. */
  let verifiedMs = Number.NEGATIVE_INFINITY;
  let refreshing: Promise<void> | undefined;

  async function refresh(to: PrimaryLeaseRules): Promise<void> {
    const requestedMs = bootMs();
    await to.untilRevision(await revision(), cacheMaxAgeMs);
    verifiedMs = requestedMs;
  }

  /** Verifies the cache at most once a second, for any number of requests. */
  async function ensureCurrent(to: PrimaryLeaseRules): Promise<void> {
    if (bootMs() - verifiedMs < cacheMaxAgeMs / 3) return;
    refreshing ??= refresh(to).finally(() => {
      refreshing = undefined;
    });
    await refreshing;
  }

  function record(machineId: string, change: Partial<LeaseRecord>): void {
    const now = bootMs();
    const before = records.get(machineId);
    const after = {
      requestedMs: now,
      grantedMs: undefined,
      term: 0n,
      isEngineUnresponsive: false,
      ...before,
      ...change,
    };
    // Records are in the order of their changes, so the loop below stops at the first recent one.
    records.delete(machineId);
    records.set(machineId, after);
    if (after.isEngineUnresponsive !== (before?.isEngineUnresponsive ?? false)) onChange(machineId);
    for (const [id, { requestedMs }] of records) {
      if (now - requestedMs <= retentionMs) break;
      records.delete(id);
    }
  }

  function count(outcome: LeaseOutcome): void {
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  }

  /** True if more than half of the previous lease is over. A lease of another term is not a renewal. */
  function isLate(machineId: string, term: bigint): boolean {
    const before = records.get(machineId);
    if (before?.grantedMs === undefined || before.term !== term) return false;
    return bootMs() - before.grantedMs > primaryLeaseMs / 2;
  }

  function reportOf({ requestedMs, grantedMs, isEngineUnresponsive }: LeaseRecord): LeaseReport {
    const now = bootMs();
    const grantedAgoMs = grantedMs === undefined ? undefined : now - grantedMs;
    return { requestedAgoMs: now - requestedMs, grantedAgoMs, isEngineUnresponsive };
  }

  return {
    async request(session, request) {
      const { machineId } = session;
      record(machineId, { requestedMs: bootMs(), isEngineUnresponsive: request.engineUnresponsive });
      if (rules === undefined) return;
      await ensureCurrent(rules).catch((error: unknown) =>
        log.debug("primary lease rules not current", { error: String(error) }),
      );
      // There is no await from here to the response, so no revocation can happen between them.
      const isRevoked = request.term <= (revokedTerms.get(machineId) ?? -1n);
      const refusal = isRevoked
        ? "leases under this term are revoked"
        : rules.refusal(machineId, request.serviceId, Number(request.term));
      const reason = leaseRefusalOf({ hasLease: hasLease(), verifiedAgoMs: bootMs() - verifiedMs, refusal });
      count(reason !== undefined ? "refused" : isLate(machineId, request.term) ? "late" : "granted");
      if (reason === undefined) record(machineId, { grantedMs: bootMs(), term: request.term });
      const granted = reason === undefined;
      session.send({ case: "primaryLeaseResponse", value: { number: request.number, granted, reason: reason ?? "" } });
    },
    opened(machineId) {
      if (records.has(machineId)) record(machineId, { requestedMs: bootMs(), isEngineUnresponsive: false });
    },
    report(machineId) {
      const latest = records.get(machineId);
      return latest && reportOf(latest);
    },
    suspects() {
      const all = [...records].map(([machineId, latest]) => [machineId, reportOf(latest)] as const);
      return new Map(
        all.filter(
          ([, { requestedAgoMs, isEngineUnresponsive }]) =>
            requestedAgoMs < retentionMs && (isEngineUnresponsive || requestedAgoMs > requestOverdueMs),
        ),
      );
    },
    revoke(machineId, term) {
      const before = revokedTerms.get(machineId) ?? -1n;
      revokedTerms.delete(machineId);
      revokedTerms.set(machineId, term > before ? term : before);
      // The oldest revocations are in the cache by now, so the rules refuse the same leases.
      if (revokedTerms.size > revokedTermsMax)
        for (const [oldest] of [...revokedTerms].slice(0, 100)) revokedTerms.delete(oldest);
      const now = bootMs();
      const { grantedMs } = records.get(machineId) ?? {};
      // A machine without a record had no grant within the retention, or since this process began.
      return now - (grantedMs ?? Math.max(startedMs, now - retentionMs));
    },
    outcomes: () => counts,
  };
}
