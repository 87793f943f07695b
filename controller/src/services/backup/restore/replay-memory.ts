import type { RestoreObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import type { HostObject } from "#fleet/host/host.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { growthRefusal } from "#fleet/placement/resize-machine.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { hasRequestedSize } from "../../scaling/size-plan.ts";

/** Memory that a machine needs until its restore is finished, because its plan has too little for the replay. */
export interface ReplayMemory {
  readonly bytes: number;
  /** Reason why the machine cannot get the memory; undefined if it can. */
  readonly refused: string | undefined;
}

export interface ReplayMemoryDeps {
  readonly machines: Pick<Collection<MachineObject>, "values">;
  readonly hosts: Pick<Collection<HostObject>, "get">;
  readonly catalog: CatalogData;
}

const gib = 1024 ** 3;

/**
 * Memory of the smallest plan that can replay the log of a restore that failed for lack of memory; undefined for other
 * restores. A machine never gets more memory than the catalog's largest plan has.
 */
export function replayMemoryOf(
  restore: RestoreObservation | undefined,
  machine: MachineObject | undefined,
  { machines, hosts, catalog }: ReplayMemoryDeps,
): ReplayMemory | undefined {
  if (restore?.state !== "failed" || restore.errorCode !== "plan_too_small" || machine === undefined) return undefined;
  const required = Number(restore.requiredMemoryBytes);
  // The agent does not know how much is required.
  if (required === 0) return undefined;
  const { spec, status } = machine;
  const offered = catalog.plans.flatMap(({ kind, memoryGb }) =>
    kind === (spec.kind ?? "container") && memoryGb * gib >= required ? [memoryGb * gib] : [],
  );
  if (spec.memoryBytes >= required) {
    const refused = hasRequestedSize(machine) ? "" : (status.sizeProblem ?? "");
    return { bytes: spec.memoryBytes, refused: refused === "" ? undefined : refused };
  }
  if (offered.length === 0)
    return {
      bytes: required,
      refused: `The restore needs ${Math.ceil(required / gib)} GiB of memory, more than any plan has.`,
    };
  const bytes = Math.min(...offered);
  const host = hosts.get(spec.hostId ?? "")?.object;
  const reason = host && growthRefusal(machine, { ...spec, memoryBytes: bytes }, host, objectsOf(machines));
  const refused =
    reason === undefined ? undefined : `The machine's host lacks capacity for ${bytes / gib} GiB of memory: ${reason}`;
  return { bytes, refused };
}

function* objectsOf(machines: ReplayMemoryDeps["machines"]): Iterable<MachineObject> {
  for (const { object } of machines.values()) yield object;
}
