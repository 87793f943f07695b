import { ComputeFailure, HostUnreachable } from "@holdfast/compute/compute-failure.ts";
import type { MachineFacts } from "@holdfast/compute/compute-provider.ts";
import { requireSnapshots } from "@holdfast/compute/provider-facets.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import { type StaleSnapshot, machineKind, type MachineObject } from "./machine.ts";
import type { MachineSnapshotDeps } from "./machine-snapshot.ts";

export interface RemovalStep {
  readonly kind: "removeSnapshot";
  readonly name: string;
}

const initialRetryDelayMs = 15_000;
const maxRetryDelayMs = 3_600_000;

/**
 * Removals of snapshots that the spec does not request, whether or not the machine runs. A failed removal is retried
 * with a back-off of 15 s up to one hour; `recheckInMs` is the time until the next retry, null without one.
 */
export function planSnapshotRemovals(
  { spec, status }: MachineObject,
  { snapshots }: MachineFacts,
  now: number,
): { readonly steps: readonly RemovalStep[]; readonly recheckInMs: number | null } {
  const failed = new Map((status.staleSnapshots ?? []).map((each) => [each.name, each]));
  // A recorded snapshot that no longer exists is planned as well: its removal deletes the record.
  const stale = new Set([...snapshots, ...failed.keys()].filter((name) => name !== spec.snapshot?.name));
  const waits = [...stale].map((name) => ({ name, waitMs: waitMsOf(failed.get(name), now) }));
  const laterWaits = waits.flatMap(({ waitMs }) => (waitMs > 0 ? [waitMs] : []));
  return {
    steps: waits.flatMap(({ name, waitMs }) => (waitMs > 0 ? [] : [{ kind: "removeSnapshot", name }])),
    recheckInMs: laterWaits.length === 0 ? null : Math.min(...laterWaits),
  };
}

function waitMsOf(failed: StaleSnapshot | undefined, now: number): number {
  // A last attempt in the future means that the clock was set back.
  if (failed === undefined || failed.triedAt > now) return 0;
  return failed.triedAt + Math.min(maxRetryDelayMs, initialRetryDelayMs * 2 ** (failed.tries - 1)) - now;
}

/**
 * Removes a snapshot, or records why that failed: a stale snapshot does not affect its machine. Throws HostUnreachable.
 */
export async function removeSnapshot(
  id: string,
  name: string,
  deps: MachineSnapshotDeps,
  signal: AbortSignal,
): Promise<void> {
  try {
    await requireSnapshots(deps.provider).remove(id, name, signal);
  } catch (error) {
    if (error instanceof HostUnreachable || signal.aborted) throw error;
    const reason = error instanceof ComputeFailure ? error.message : "The host could not remove it.";
    deps.log.warn("snapshot not removed", { machine: id, snapshot: name, reason, error: String(error) });
    return recordAttempt(id, name, reason, deps, signal);
  }
  return recordAttempt(id, name, undefined, deps, signal);
}

function recordAttempt(
  id: string,
  name: string,
  reason: string | undefined,
  { machines, begin, clock }: MachineSnapshotDeps,
  signal: AbortSignal,
): Promise<void> {
  return retryConflict(signal, async () => {
    const before = await machines.getCurrent(id, signal);
    const { staleSnapshots: failed = [] } = before?.object.status ?? {};
    const previous = failed.find((each) => each.name === name);
    if (before === undefined || (previous === undefined && reason === undefined)) return;
    const others = failed.filter((each) => each !== previous);
    const failedAgain =
      reason === undefined ? [] : [{ name, reason, tries: (previous?.tries ?? 0) + 1, triedAt: clock.now() }];
    const unit = begin();
    const status = { ...before.object.status, staleSnapshots: [...others, ...failedAgain] };
    unit.update(machineKind, before, { ...before.object, status });
    await unit.commit(signal);
  });
}
