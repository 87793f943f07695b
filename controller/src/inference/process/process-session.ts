import type { Clock } from "@holdfast/common/clock.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, newMetadata, type Stored } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { Charge, Holder, Ledger } from "../account/ledger.ts";
import type { InferenceAccount } from "../account/inference-account.ts";
import type { UsageRow, UsageStore } from "../usage/usage-store.ts";
import { type InferenceProcess, inferenceProcessKind } from "./inference-process.ts";

/** What a process of the proxy changes through one stream. A newer stream of the process ends all of it. */
export interface ProcessSession extends Holder {
  readonly landedBatch: number;
  /** What it holds, by account. */
  holds(): { readonly account: string; readonly amount: number }[];
  /** Takes a batch of calls that ended into usage and accounts, once. */
  settle(batch: number, charges: readonly Charge[], rows: readonly UsageRow[], signal: AbortSignal): Promise<void>;
  /** The process follows nobody from here on, unless a newer stream has begun. */
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

/** Makes this stream the newest of the process. What older ones had begun is in the accounts, or will never be. */
export async function openProcessSession(
  { processId, listeners }: { readonly processId: string; readonly listeners: readonly string[] },
  deps: SessionDeps,
  signal: AbortSignal,
): Promise<ProcessSession> {
  const { processes, accounts, clock, controllerId } = deps;
  let stored = await retryConflict(signal, () => begin());
  const revision = stored.modRevision;
  // Older streams change nothing after this revision.
  await accounts.reached(revision, 5_000);

  async function begin(): Promise<Stored<InferenceProcess>> {
    const before = await processes.fresh(processId, signal);
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
    holds() {
      const held: { account: string; amount: number }[] = [];
      for (const { object } of accounts.values()) {
        const amount = lookUp(object.status.holds, processId);
        if (amount !== undefined) held.push({ account: object.metadata.id, amount });
      }
      return held;
    },
    async settle(batch, charges, rows, asked) {
      if (batch <= stored.object.status.landedBatch) return;
      await deps.usage.add(processId, batch, rows);
      await retryConflict(asked, async () => {
        const unit = deps.begin();
        const after = replaced(unit, { landedBatch: batch });
        await deps.ledger.settle(unit, processId, charges, asked);
        stored = { object: after, modRevision: await unit.commit(asked) };
      });
    },
    async end() {
      const unit = deps.begin();
      replaced(unit, { controllerId: null });
      await unit.commit().catch(() => undefined);
    },
  };
}
