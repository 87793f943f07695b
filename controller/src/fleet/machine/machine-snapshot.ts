import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { ComputeFailure, HostUnreachable } from "@holdfast/compute/compute-failure.ts";
import type { ComputeProvider, MachineFacts } from "@holdfast/compute/compute-provider.ts";
import { requireSnapshots } from "@holdfast/compute/provider-facets.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { machineKind, type MachineObject, type MachineStatus } from "./machine.ts";

export type SnapshotStep =
  /** `starts`: number of starts of the machine so far; the provider refuses the step after another start. */
  | { readonly kind: "takeSnapshot" | "restoreSnapshot"; readonly name: string; readonly starts: number }
  /** Records that the snapshot to restore does not exist. */
  | { readonly kind: "recordMissingSnapshot"; readonly name: string };

export interface MachineSnapshotDeps {
  readonly provider: Pick<ComputeProvider, "name" | "snapshots">;
  readonly machines: Pick<Collection<MachineObject>, "getCurrent">;
  readonly begin: () => UnitOfWork;
  readonly clock: Pick<Clock, "now">;
  readonly log: Log;
}

type SnapshotRecord = NonNullable<MachineStatus["snapshot"]>;

/**
 * The snapshot step before a start of the machine. A step with a recorded outcome is not repeated: after a start a
 * snapshot would contain later data, and a restore would undo newer writes.
 */
export function planSnapshot(
  { spec, status }: MachineObject,
  { snapshots, starts, state }: MachineFacts,
): readonly SnapshotStep[] {
  const desired = spec.snapshot ?? undefined;
  if (desired === undefined || state === "running" || spec.power === "off") return [];
  const { name, restore } = desired;
  const recorded = status.snapshot?.name === name ? status.snapshot.outcome : undefined;
  // Without a recorded outcome the machine was not started since the request, so there is nothing to restore.
  if (recorded === undefined) return restore ? [] : [{ kind: "takeSnapshot", name, starts }];
  if (!restore || recorded !== "taken") return [];
  return snapshots.includes(name)
    ? [{ kind: "restoreSnapshot", name, starts }]
    : [{ kind: "recordMissingSnapshot", name }];
}

/** Performs one step. A step may be performed again after a crash of the controller. */
export async function performSnapshotStep(
  id: string,
  step: SnapshotStep,
  deps: MachineSnapshotDeps,
  signal: AbortSignal,
): Promise<void> {
  const { name } = step;
  switch (step.kind) {
    case "takeSnapshot":
      return record(id, await take(id, step, deps, signal), deps, signal);
    case "restoreSnapshot": {
      // A restore is recorded before the machine starts. The store is read again, because the plan's count of starts
      // may be older than another controller's restore.
      const machine = await deps.machines.getCurrent(id, signal);
      if (machine === undefined || !isNextOutcome(machine.object, { name, outcome: "restored", reason: "" })) return;
      await requireSnapshots(deps.provider).restore(id, name, step.starts, signal);
      deps.log.warn("data restored from a snapshot", { machine: id, snapshot: name });
      return record(id, { name, outcome: "restored", reason: "" }, deps, signal);
    }
    case "recordMissingSnapshot":
      return record(
        id,
        { name, outcome: "none", reason: "The snapshot no longer existed when it was needed." },
        deps,
        signal,
      );
  }
}

/**
 * If no snapshot can be taken, the outcome is "none" with the reason, and the start continues. Throws HostUnreachable.
 */
async function take(
  id: string,
  { name, starts }: { readonly name: string; readonly starts: number },
  { provider, log }: MachineSnapshotDeps,
  signal: AbortSignal,
): Promise<SnapshotRecord> {
  try {
    await requireSnapshots(provider).take(id, name, starts, signal);
    return { name, outcome: "taken", reason: "" };
  } catch (error) {
    if (error instanceof HostUnreachable || signal.aborted) throw error;
    const reason = error instanceof ComputeFailure ? error.message : "The host could not take the snapshot.";
    log.warn("snapshot not taken", { machine: id, reason, error: String(error) });
    return { name, outcome: "none", reason };
  }
}

/** Records the outcome, unless another controller recorded a later one. */
function record(id: string, recorded: SnapshotRecord, deps: MachineSnapshotDeps, signal: AbortSignal): Promise<void> {
  return retryConflict(signal, async () => {
    const before = await deps.machines.getCurrent(id, signal);
    if (before === undefined || !isNextOutcome(before.object, recorded)) return;
    const unit = deps.begin();
    unit.update(machineKind, before, { ...before.object, status: { ...before.object.status, snapshot: recorded } });
    await unit.commit(signal);
  });
}

/** True if this outcome may follow the recorded one of the requested snapshot. */
export function isNextOutcome({ spec, status }: MachineObject, { name, outcome }: SnapshotRecord): boolean {
  if (spec.snapshot?.name !== name) return false;
  const { restore } = spec.snapshot;
  const before = status.snapshot?.name === name ? status.snapshot.outcome : undefined;
  if (before === undefined) return !restore && outcome !== "restored";
  return before === "taken" && restore && outcome !== "taken";
}
