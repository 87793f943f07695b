import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import { microcentsPerCent, parseAccount } from "@holdfast/common/inference/accounts.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { createKeyedMutex } from "#kernel/runtime/keyed-mutex.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { InferenceKey } from "../key/inference-key.ts";
import type { InferenceProcess } from "../process/inference-process.ts";
import type { InferenceLimits, InferenceSettings } from "../settings/inference-settings.ts";
import { judgeCost } from "./circuit.ts";
import { freeOf, granted, heldOf, isOver, planHold, recallMs, released, settledBy } from "./hold-plan.ts";
import {
  type AccountStatus,
  emptyAccount,
  type InferenceAccount,
  inferenceAccountKind,
  newAccount,
} from "./inference-account.ts";

/** A process, by what proves that its stream is the newest. */
export interface Holder {
  readonly processId: string;
  /** Adds the condition that no newer stream of the process has begun. */
  fence(unit: UnitOfWork): void;
}

export interface HoldAsk {
  readonly account: string;
  readonly organizationId: string;
  readonly need: number;
  /** Of the smallest call that waits. */
  readonly least: number;
  /** Of calls under way in the process that asks. */
  readonly reserved: number;
}

export interface Charge {
  readonly account: string;
  readonly organizationId: string;
  readonly amount: number;
}

/** The accounts. Each change is a compare-and-set, so that any controller may make it for the processes that follow it. */
export interface Ledger {
  /** Gives a process more of an account: what it asked for, or what there is; 0 where there is no limit of the kind any more. */
  hold(holder: Holder, ask: HoldAsk, signal: AbortSignal): Promise<{ readonly amount: number; readonly left: number }>;
  release(
    holder: Holder,
    account: string,
    its: { readonly amount: number; readonly reserved: number; readonly recallId: string },
    signal: AbortSignal,
  ): Promise<void>;
  /** Adds the changes of calls that ended to a unit of work. */
  settle(unit: UnitOfWork, processId: string, charges: readonly Charge[], signal: AbortSignal): Promise<void>;
  /** Asks holders for what is over a limit that was lowered; nothing where it is not over. */
  trim(account: string, signal: AbortSignal): Promise<void>;
  /** The account as this replica sees it. */
  statusOf(account: string): AccountStatus;
}

interface LedgerDeps {
  readonly begin: () => UnitOfWork;
  readonly accounts: Collection<InferenceAccount>;
  readonly keys: Pick<Collection<InferenceKey>, "get">;
  readonly settings: Pick<Collection<InferenceSettings>, "get">;
  readonly processes: Pick<Collection<InferenceProcess>, "values" | "subscribe">;
  /** Does a stream of the process live, as far as this controller can know? */
  readonly isFollowing: (process: InferenceProcess) => boolean;
  readonly clock: Pick<Clock, "now">;
  readonly newId: () => string;
}

export function createLedger(deps: LedgerDeps): Ledger {
  const { accounts, keys, settings, processes, clock } = deps;
  const inTurn = createKeyedMutex();

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

  /** One look: what to do next, done if it can be. Undefined: look again when something changed. */
  async function tryHold(holder: Holder, ask: HoldAsk, id: string, signal: AbortSignal) {
    const limit = limitOf(ask.account);
    if (limit === undefined) return { amount: 0, left: 0 };
    const before = await accounts.fresh(ask.account, signal);
    const object = before?.object ?? newAccount(ask.account, ask.organizationId, clock.now());
    const asked = { id, processId: holder.processId, need: ask.need };
    const step = planHold(object.status, limit, asked, { connected: connected(), now: clock.now() });
    if (step.kind === "wait") return undefined;
    const unit = deps.begin();
    holder.fence(unit);
    if (step.kind === "recall") {
      put(unit, before, { ...object, status: { ...object.status, recall: step.recall } });
      await accounts.reached(await unit.commit(signal), 1_000).catch(() => undefined);
      return undefined;
    }
    const { recall } = object.status;
    const answered = recall?.id === id ? Object.values(recall.answered) : [];
    const reserved = answered.reduce((sum, each) => sum + each, ask.reserved);
    let status = granted(object.status, asked, step.amount);
    const limits = limitsOf(ask.organizationId);
    if (parseAccount(ask.account)?.kind === "cost" && limits !== undefined && step.amount < ask.least) {
      // What a process that is not there holds may come back.
      const lost = heldOf(
        Object.fromEntries(Object.entries(status.holds).filter(([each]) => !connected().includes(each))),
      );
      const refused = { least: ask.least, reserved: reserved + lost };
      status = judgeCost(unit, ask.account, ask.organizationId, status, { limits, refused, now: clock.now() });
    }
    const left = Math.max(0, freeOf(status, limit));
    if (step.amount === 0 && status.circuitOpenedAt === object.status.circuitOpenedAt && recall === null)
      return { amount: 0, left };
    put(unit, before, { ...object, status });
    await unit.commit(signal);
    return { amount: step.amount, left };
  }

  return {
    // One at a time for each account: a second one would wait for the recall of the first anyway.
    hold: (holder, ask, signal) =>
      inTurn(ask.account, async () => {
        const id = deps.newId();
        for (;;) {
          const changed = whenAny(signal, ask.account);
          try {
            const done = await retryConflict(signal, () => tryHold(holder, ask, id, signal));
            if (done !== undefined) return done;
            await changed.promise;
          } finally {
            changed.close();
          }
        }
      }),

    release: (holder, account, its, signal) =>
      retryConflict(signal, async () => {
        const before = await accounts.fresh(account, signal);
        if (before === undefined) return;
        const unit = deps.begin();
        holder.fence(unit);
        put(unit, before, {
          ...before.object,
          status: withoutOver(released(before.object.status, holder.processId, its)),
        });
        await unit.commit(signal);
      }),

    async settle(unit, processId, charges, signal) {
      for (const { account, organizationId, amount } of charges) {
        const before = await accounts.fresh(account, signal);
        const object = before?.object ?? newAccount(account, organizationId, clock.now());
        let status = settledBy(object.status, processId, amount);
        const limits = limitsOf(organizationId);
        if (parseAccount(account)?.kind === "cost" && limits !== undefined)
          status = judgeCost(unit, account, organizationId, status, { limits, now: clock.now() });
        put(unit, before, { ...object, status });
      }
    },

    trim: (account, signal) =>
      retryConflict(signal, async () => {
        const limit = limitOf(account);
        const before = accounts.get(account) && (await accounts.fresh(account, signal));
        if (limit === undefined || before === undefined) return;
        const over = -freeOf(before.object.status, limit);
        const from = connected().filter((each) => (lookUp(before.object.status.holds, each) ?? 0) > 0);
        if (over <= 0 || from.length === 0) return;
        const until = clock.now() + recallMs;
        const recall = { id: deps.newId(), by: "", need: over, from, answered: {}, until };
        const unit = deps.begin();
        put(unit, before, { ...before.object, status: { ...before.object.status, recall } });
        await unit.commit(signal);
      }),

    statusOf: (account) => accounts.get(account)?.object.status ?? emptyAccount,
  };

  /** A recall for a lowered limit is over when all have answered. */
  function withoutOver(status: AccountStatus): AccountStatus {
    const { recall } = status;
    if (recall === null || recall.by !== "") return status;
    return isOver(recall, { connected: connected(), now: clock.now() }) ? { ...status, recall: null } : status;
  }

  /** Resolves when the account or the processes change, and when a recall may be over. Never rejects but for the signal. */
  function whenAny(signal: AbortSignal, account: string): { readonly promise: Promise<void>; close(): void } {
    const over = new AbortController();
    const { promise, resolve } = Promise.withResolvers<void>();
    const watches = [
      accounts.subscribe((id) => {
        if (id === account) resolve();
      }),
      processes.subscribe(() => resolve()),
    ];
    const timer = delay(recallMs / 4, undefined, { signal: AbortSignal.any([signal, over.signal]) });
    timer.then(resolve, () => resolve());
    return {
      promise,
      close() {
        over.abort();
        for (const watch of watches) watch.close();
      },
    };
  }
}
