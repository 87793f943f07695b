import { ComputeFailure, HostUnreachable } from "@holdfast/compute/compute-failure.ts";
import type { MachineFacts } from "@holdfast/compute/compute-provider.ts";
import { requireSnapshots } from "@holdfast/compute/require-snapshots.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import { type LeftSnapshot, machineKind, type MachineObject } from "./machine.ts";
import type { SnapshotDeps } from "./machine-snapshot.ts";

export interface RemovalStep {
  readonly kind: "removeSnapshot";
  readonly name: string;
}

const firstRetryMs = 15_000;
const lastRetryMs = 3_600_000;

/**
 * Pure: snapshots that nobody wants any more, whether the machine runs or not; one whose removal failed is tried again later
 * and later, up to an hour. `lookAgainMs` is when the next of those is due.
 */
export function planRemovals(
  { spec, status }: MachineObject,
  { snapshots }: MachineFacts,
  now: number,
): { readonly steps: readonly RemovalStep[]; readonly lookAgainMs: number | null } {
  const left = new Map((status.leftSnapshots ?? []).map((each) => [each.name, each]));
  // Of one that somebody else removed the note goes.
  const unwanted = new Set([...snapshots, ...left.keys()].filter((name) => name !== spec.snapshot?.name));
  const waits = [...unwanted].map((name) => ({ name, waitMs: waitMsOf(left.get(name), now) }));
  const later = waits.flatMap(({ waitMs }) => (waitMs > 0 ? [waitMs] : []));
  return {
    steps: waits.flatMap(({ name, waitMs }) => (waitMs > 0 ? [] : [{ kind: "removeSnapshot", name }])),
    lookAgainMs: later.length === 0 ? null : Math.min(...later),
  };
}

function waitMsOf(left: LeftSnapshot | undefined, now: number): number {
  // Tried at a time that is still to come: the clock was put back.
  if (left === undefined || left.triedAt > now) return 0;
  return left.triedAt + Math.min(lastRetryMs, firstRetryMs * 2 ** (left.tries - 1)) - now;
}

/** Removes it, or notes why that failed: a machine is none the worse for a snapshot too many. Throws HostUnreachable. */
export async function removeSnapshot(id: string, name: string, deps: SnapshotDeps, signal: AbortSignal): Promise<void> {
  try {
    await requireSnapshots(deps.provider).remove(id, name, signal);
  } catch (error) {
    if (error instanceof HostUnreachable || signal.aborted) throw error;
    const reason = error instanceof ComputeFailure ? error.message : "The host could not remove it.";
    deps.log.warn("snapshot not removed", { machine: id, snapshot: name, reason, error: String(error) });
    return note(id, name, reason, deps, signal);
  }
  return note(id, name, undefined, deps, signal);
}

function note(
  id: string,
  name: string,
  reason: string | undefined,
  { machines, begin, clock }: SnapshotDeps,
  signal: AbortSignal,
): Promise<void> {
  return retryConflict(signal, async () => {
    const before = await machines.fresh(id, signal);
    const { leftSnapshots: left = [] } = before?.object.status ?? {};
    const noted = left.find((each) => each.name === name);
    if (before === undefined || (noted === undefined && reason === undefined)) return;
    const others = left.filter((each) => each !== noted);
    const again = reason === undefined ? [] : [{ name, reason, tries: (noted?.tries ?? 0) + 1, triedAt: clock.now() }];
    const unit = begin();
    const status = { ...before.object.status, leftSnapshots: [...others, ...again] };
    unit.update(machineKind, before, { ...before.object, status });
    await unit.commit(signal);
  });
}
