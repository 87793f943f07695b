import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import { microcentsPerCent, parseAccount } from "@holdfast/common/inference/accounts.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { createKeyedMutex } from "@holdfast/common/concurrency/mutex.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { InferenceKey } from "../key/inference-key.ts";
import type { InferenceProcess } from "../process/inference-process.ts";
import type { InferenceLimits, InferenceSettings } from "../settings/inference-settings.ts";
import { applyCostLimits } from "./circuit.ts";
import {
  freeOf,
  granted,
  leasedOf,
  isRecallOver,
  planLease,
  recallMs,
  released,
  settledBy,
} from "./quota-lease-plan.ts";
import {
  type AccountStatus,
  emptyAccount,
  type InferenceAccount,
  inferenceAccountKind,
  newAccount,
} from "./inference-account.ts";

/** A process with a lease, and the proof that its stream is the newest one. */
export interface LeasingProcess {
  readonly processId: string;
  /** Makes the commit of the unit require that the process has no newer stream. */
  fence(unit: UnitOfWork): void;
}

export interface LeaseRequest {
  readonly account: string;
  readonly organizationId: string;
  readonly need: number;
  /** Amount that the smallest waiting call needs. */
  readonly least: number;
  /** Amount that calls in flight of the requesting process have reserved. */
  readonly reserved: number;
}

export interface Charge {
  readonly account: string;
  readonly organizationId: string;
  readonly amount: number;
  /** Cost accounts: model of a call whose reported usage exceeds its reservation; absent: none. */
  readonly modelAboveReservation?: string;
}

/**
 * The accounts of all limits. Each change is a compare-and-set, so each controller changes them for the processes that
 * follow it.
 */
export interface Ledger {
  /**
   * Extends the lease of a process by the requested amount, or by the available amount if that is less; by 0 if the
   * limit was deleted. `remaining`: the available amount afterwards.
   */
  lease(
    holder: LeasingProcess,
    request: LeaseRequest,
    signal: AbortSignal,
  ): Promise<{ readonly amount: number; readonly remaining: number }>;
  release(
    holder: LeasingProcess,
    account: string,
    amounts: { readonly amount: number; readonly reserved: number; readonly recallId: string },
    signal: AbortSignal,
  ): Promise<void>;
  /** Adds the charges of ended calls to a unit of work. */
  settle(unit: UnitOfWork, processId: string, charges: readonly Charge[], signal: AbortSignal): Promise<void>;
  /** After a limit was lowered, recalls the amount by which leases exceed it, if they do. */
  recallExcess(account: string, signal: AbortSignal): Promise<void>;
  /** The cached account of this controller. */
  statusOf(account: string): AccountStatus;
}

interface LedgerDeps {
  readonly begin: () => UnitOfWork;
  readonly accounts: Collection<InferenceAccount>;
  readonly keys: Pick<Collection<InferenceKey>, "get">;
  readonly settings: Pick<Collection<InferenceSettings>, "get">;
  readonly processes: Pick<Collection<InferenceProcess>, "values" | "subscribe">;
  /** True if the process follows a controller, according to the cached objects of this controller. */
  readonly isFollowing: (process: InferenceProcess) => boolean;
  readonly clock: Pick<Clock, "now">;
  readonly newId: () => string;
}

export function createLedger(deps: LedgerDeps): Ledger {
  const { accounts, keys, settings, processes, clock } = deps;
  const runExclusive = createKeyedMutex();

  const limitsOf = (organizationId: string): InferenceLimits | undefined =>
    settings.get(organizationId)?.object.spec.limits ?? undefined;

  function limitOf(account: string): number | undefined {
    const name = parseAccount(account);
    if (name === undefined) return undefined;
    if (name.kind === "cost") {
      const limits = limitsOf(name.subject);
      return limits && limits.monthlyCostLimitCents * microcentsPerCent;
    }
    const spec = keys.get(name.subject)?.object.spec;
    return (name.kind === "tokens" ? spec?.monthlyTokenLimit : spec?.rateLimitRpm) ?? undefined;
  }

  function connected(): string[] {
    const ids: string[] = [];
    for (const { object } of processes.values()) if (deps.isFollowing(object)) ids.push(object.metadata.id);
    return ids;
  }

  function put(unit: UnitOfWork, before: Stored<InferenceAccount> | undefined, after: InferenceAccount): void {
    if (before === undefined) unit.create(inferenceAccountKind, after);
    else unit.update(inferenceAccountKind, before, after);
  }

  /** One attempt to extend a lease. Undefined: retry after a change of the account or the processes. */
  async function tryLease(holder: LeasingProcess, request: LeaseRequest, id: string, signal: AbortSignal) {
    const limit = limitOf(request.account);
    if (limit === undefined) return { amount: 0, remaining: 0 };
    const before = await accounts.getCurrent(request.account, signal);
    const object = before?.object ?? newAccount(request.account, request.organizationId, clock.now());
    const demand = { id, processId: holder.processId, need: request.need };
    const step = planLease(object.status, limit, demand, { connected: connected(), now: clock.now() });
    if (step.kind === "wait") return undefined;
    const unit = deps.begin();
    holder.fence(unit);
    if (step.kind === "recall") {
      put(unit, before, { ...object, status: { ...object.status, recall: step.recall } });
      await accounts.untilRevision(await unit.commit(signal), 1_000).catch(() => undefined);
      return undefined;
    }
    const { recall } = object.status;
    const answered = recall?.id === id ? Object.values(recall.answered) : [];
    const reserved = answered.reduce((sum, each) => sum + each, request.reserved);
    let status = granted(object.status, demand, step.amount);
    const limits = limitsOf(request.organizationId);
    if (parseAccount(request.account)?.kind === "cost" && limits !== undefined && step.amount < request.least) {
      // Leases of disconnected processes may be released later.
      const lost = leasedOf(
        Object.fromEntries(Object.entries(status.leases).filter(([each]) => !connected().includes(each))),
      );
      const refused = { least: request.least, reserved: reserved + lost };
      status = applyCostLimits(unit, request.account, request.organizationId, status, {
        limits,
        refused,
        now: clock.now(),
      });
    }
    const remaining = Math.max(0, freeOf(status, limit));
    if (step.amount === 0 && status.circuitOpenedAt === object.status.circuitOpenedAt && recall === null)
      return { amount: 0, remaining };
    put(unit, before, { ...object, status });
    await unit.commit(signal);
    return { amount: step.amount, remaining };
  }

  return {
    // One extension at a time per account: a second one would wait for the recall of the first.
    lease: (holder, request, signal) =>
      runExclusive(request.account, async () => {
        const id = deps.newId();
        for (;;) {
          const changed = whenAny(signal, request.account);
          try {
            const done = await retryConflict(signal, () => tryLease(holder, request, id, signal));
            if (done !== undefined) return done;
            await changed.promise;
          } finally {
            changed.close();
          }
        }
      }),

    release: (holder, account, amounts, signal) =>
      retryConflict(signal, async () => {
        const before = await accounts.getCurrent(account, signal);
        if (before === undefined) return;
        const unit = deps.begin();
        holder.fence(unit);
        put(unit, before, {
          ...before.object,
          status: withoutFinishedRecall(released(before.object.status, holder.processId, amounts)),
        });
        await unit.commit(signal);
      }),

    async settle(unit, processId, charges, signal) {
      for (const { account, organizationId, amount, modelAboveReservation } of charges) {
        const before = await accounts.getCurrent(account, signal);
        const object = before?.object ?? newAccount(account, organizationId, clock.now());
        let status = settledBy(object.status, processId, amount);
        const limits = limitsOf(organizationId);
        if (parseAccount(account)?.kind === "cost" && limits !== undefined)
          status = applyCostLimits(unit, account, organizationId, status, {
            limits,
            ...(modelAboveReservation !== undefined && { modelAboveReservation }),
            now: clock.now(),
          });
        put(unit, before, { ...object, status });
      }
    },

    recallExcess: (account, signal) =>
      retryConflict(signal, async () => {
        const limit = limitOf(account);
        const before = accounts.get(account) && (await accounts.getCurrent(account, signal));
        if (limit === undefined || before === undefined) return;
        const excess = -freeOf(before.object.status, limit);
        const from = connected().filter((each) => (lookUp(before.object.status.leases, each) ?? 0) > 0);
        if (excess <= 0 || from.length === 0) return;
        const until = clock.now() + recallMs;
        const recall = { id: deps.newId(), by: "", need: excess, from, answered: {}, until };
        const unit = deps.begin();
        put(unit, before, { ...before.object, status: { ...before.object.status, recall } });
        await unit.commit(signal);
      }),

    statusOf: (account) => accounts.get(account)?.object.status ?? emptyAccount,
  };

  /** Ends a recall for a lowered limit after all processes have responded. */
  function withoutFinishedRecall(status: AccountStatus): AccountStatus {
    const { recall } = status;
    if (recall === null || recall.by !== "") return status;
    return isRecallOver(recall, { connected: connected(), now: clock.now() }) ? { ...status, recall: null } : status;
  }

  /**
   * Resolves when the account or the processes change, and after a quarter of the time of a recall. Rejects only with
   * the reason of the signal.
   */
  function whenAny(signal: AbortSignal, account: string): { readonly promise: Promise<void>; close(): void } {
    const finished = new AbortController();
    const { promise, resolve } = Promise.withResolvers<void>();
    const watches = [
      accounts.subscribe((id) => {
        if (id === account) resolve();
      }),
      processes.subscribe(() => resolve()),
    ];
    const timer = delay(recallMs / 4, undefined, { signal: AbortSignal.any([signal, finished.signal]) });
    timer.then(resolve, () => resolve());
    return {
      promise,
      close() {
        finished.abort();
        for (const watch of watches) watch.close();
      },
    };
  }
}
