import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { ComputeFailure, HostUnreachable } from "@holdfast/compute/compute-failure.ts";
import type { ComputeProvider, MachineFacts } from "@holdfast/compute/compute-provider.ts";
import { requireSnapshots } from "@holdfast/compute/require-snapshots.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { machineKind, type MachineObject, type MachineStatus } from "./machine.ts";

export type SnapshotStep =
  /** Before anything else that a start may undo; `starts` is how often the machine was started until now. */
  | { readonly kind: "takeSnapshot" | "restoreSnapshot"; readonly name: string; readonly starts: number }
  /** The data were to go back to one that is gone. */
  | { readonly kind: "missSnapshot"; readonly name: string };

export interface SnapshotDeps {
  readonly provider: Pick<ComputeProvider, "name" | "snapshots">;
  readonly machines: Pick<Collection<MachineObject>, "fresh">;
  readonly begin: () => UnitOfWork;
  readonly clock: Pick<Clock, "now">;
  readonly log: Log;
}

type Noted = NonNullable<MachineStatus["snapshot"]>;

/**
 * Pure: what is to be done about the snapshot before a machine that is to run is started. What was noted is not done again:
 * after a start it would be of other data, or undo what was written since.
 */
export function planSnapshot(
  { spec, status }: MachineObject,
  { snapshots, starts, state }: MachineFacts,
): readonly SnapshotStep[] {
  const wanted = spec.snapshot ?? undefined;
  if (wanted === undefined || state === "running" || spec.power === "off") return [];
  const { name, restore } = wanted;
  const noted = status.snapshot?.name === name ? status.snapshot.outcome : undefined;
  // Nothing was started since it was to be taken, so there is nothing to go back from.
  if (noted === undefined) return restore ? [] : [{ kind: "takeSnapshot", name, starts }];
  if (!restore || noted !== "taken") return [];
  return snapshots.includes(name) ? [{ kind: "restoreSnapshot", name, starts }] : [{ kind: "missSnapshot", name }];
}

/** Performs one step. Each may be performed again after a crash. */
export async function performSnapshotStep(
  id: string,
  step: SnapshotStep,
  deps: SnapshotDeps,
  signal: AbortSignal,
): Promise<void> {
  const { name } = step;
  switch (step.kind) {
    case "takeSnapshot":
      return note(id, await take(id, step, deps, signal), deps, signal);
    case "restoreSnapshot": {
      // A controller that restored it noted that before the machine started: the plan's count of starts may be older
      // than this look.
      const machine = await deps.machines.fresh(id, signal);
      if (machine === undefined || !mayNote(machine.object, { name, outcome: "restored", reason: "" })) return;
      await requireSnapshots(deps.provider).restore(id, name, step.starts, signal);
      deps.log.warn("data put back", { machine: id, snapshot: name });
      return note(id, { name, outcome: "restored", reason: "" }, deps, signal);
    }
    case "missSnapshot":
      return note(id, { name, outcome: "none", reason: "It was gone when it was needed." }, deps, signal);
  }
}

/**
 * Where no snapshot can be taken, the outcome is "none" with the reason, and the work goes on. Only a provider that is
 * silent is retried.
 */
async function take(
  id: string,
  { name, starts }: { readonly name: string; readonly starts: number },
  { provider, log }: SnapshotDeps,
  signal: AbortSignal,
): Promise<Noted> {
  try {
    await requireSnapshots(provider).take(id, name, starts, signal);
    return { name, outcome: "taken", reason: "" };
  } catch (error) {
    if (error instanceof HostUnreachable || signal.aborted) throw error;
    const reason = error instanceof ComputeFailure ? error.message : "The host could not take it.";
    log.warn("snapshot not taken", { machine: id, reason, error: String(error) });
    return { name, outcome: "none", reason };
  }
}

/** A late report of an overtaken controller is not written: it would restore the data twice, or to a later state. */
function note(id: string, noted: Noted, deps: SnapshotDeps, signal: AbortSignal): Promise<void> {
  return retryConflict(signal, async () => {
    const before = await deps.machines.fresh(id, signal);
    if (before === undefined || !mayNote(before.object, noted)) return;
    const unit = deps.begin();
    unit.update(machineKind, before, { ...before.object, status: { ...before.object.status, snapshot: noted } });
    await unit.commit(signal);
  });
}

/** Pure: does this come next in the life of the snapshot that is wanted? */
export function mayNote({ spec, status }: MachineObject, { name, outcome }: Noted): boolean {
  if (spec.snapshot?.name !== name) return false;
  const { restore } = spec.snapshot;
  const before = status.snapshot?.name === name ? status.snapshot.outcome : undefined;
  if (before === undefined) return !restore && outcome !== "restored";
  return before === "taken" && restore && outcome !== "taken";
}
