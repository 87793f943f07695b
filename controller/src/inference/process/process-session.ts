import type { Clock } from "@holdfast/common/clock.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, newMetadata, type Stored } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { Charge, LeasingProcess, Ledger } from "../account/ledger.ts";
import type { InferenceAccount } from "../account/inference-account.ts";
import type { UsageRow, UsageStore } from "../usage/usage-store.ts";
import { type InferenceProcess, inferenceProcessKind } from "./inference-process.ts";

/** One stream of a proxy process, by which it changes its accounts. A newer stream of the process invalidates it. */
export interface ProcessSession extends LeasingProcess {
  readonly landedBatch: number;
  /** The leases of the process, by account. */
  leases(): { readonly account: string; readonly amount: number }[];
  /** Adds a batch of ended calls to usage and accounts, exactly once. */
  settle(batch: number, charges: readonly Charge[], rows: readonly UsageRow[], signal: AbortSignal): Promise<void>;
  /** Records that the process follows no controller, unless it has a newer stream. */
  end(): Promise<void>;
}

interface SessionDeps {
  readonly begin: () => UnitOfWork;
  readonly processes: Collection<InferenceProcess>;
  readonly accounts: Collection<InferenceAccount>;
  readonly ledger: Pick<Ledger, "settle">;
  readonly usage: Pick<UsageStore, "add">;
  readonly controllerId: string;
  readonly clock: Pick<Clock, "now">;
}

/** Makes this stream the newest of the process. A change by an older stream is committed before, or refused. */
export async function openProcessSession(
  { processId, listeners }: { readonly processId: string; readonly listeners: readonly string[] },
  deps: SessionDeps,
  signal: AbortSignal,
): Promise<ProcessSession> {
  const { processes, accounts, clock, controllerId } = deps;
  let stored = await retryConflict(signal, () => begin());
  const revision = stored.modRevision;
  // Older streams cannot commit changes after this revision.
  await accounts.untilRevision(revision, 5_000);

  async function begin(): Promise<Stored<InferenceProcess>> {
    const before = await processes.getCurrent(processId, signal);
    const now = clock.now();
    const status = {
      epoch: (before?.object.status.epoch ?? 0) + 1,
      landedBatch: before?.object.status.landedBatch ?? 0,
      controllerId,
      seenAt: now,
      ...(listeners.length > 0 && { listeners }),
    };
    const object: InferenceProcess =
      before === undefined
        ? { metadata: newMetadata(processId, now), spec: {}, status }
        : { ...before.object, metadata: { ...before.object.metadata, updatedAt: now }, status };
    const unit = deps.begin();
    if (before === undefined) unit.create(inferenceProcessKind, object);
    else unit.update(inferenceProcessKind, before, object);
    return { object, modRevision: await unit.commit(signal) };
  }

  function replaced(unit: UnitOfWork, change: Partial<InferenceProcess["status"]>): InferenceProcess {
    const after = { ...stored.object, status: { ...stored.object.status, ...change, seenAt: clock.now() } };
    unit.update(inferenceProcessKind, stored, after);
    return after;
  }

  return {
    processId,
    get landedBatch() {
      return stored.object.status.landedBatch;
    },
    fence: (unit) => unit.onlyWhile({ key: keyOf(inferenceProcessKind, processId), modRevision: stored.modRevision }),
    leases() {
      const leases: { account: string; amount: number }[] = [];
      for (const { object } of accounts.values()) {
        const amount = lookUp(object.status.leases, processId);
        if (amount !== undefined) leases.push({ account: object.metadata.id, amount });
      }
      return leases;
    },
    async settle(batch, charges, rows, settleSignal) {
      if (batch <= stored.object.status.landedBatch) return;
      await deps.usage.add(processId, batch, rows);
      await retryConflict(settleSignal, async () => {
        const unit = deps.begin();
        const after = replaced(unit, { landedBatch: batch });
        await deps.ledger.settle(unit, processId, charges, settleSignal);
        stored = { object: after, modRevision: await unit.commit(settleSignal) };
      });
    },
    async end() {
      const unit = deps.begin();
      replaced(unit, { controllerId: null });
      await unit.commit().catch(() => undefined);
    },
  };
}
