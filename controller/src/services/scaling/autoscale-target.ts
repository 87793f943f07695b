import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ObservedService } from "../service/observed-service.ts";
import { fillsDisk } from "./size-plan.ts";
import { type AutoscaleMemory, autoscaleOf } from "./storage-autoscale.ts";

const gib = 1024 ** 3;

/** Percent of a disk from which on it grows. */
const growsAt = 85;
/** Of the storage that it has, but a GB at least. */
const growthShare = 0.25;
/** After one that was refused or rolled back. */
const retryAfterMs = 10 * 60_000;

/** Pure: the storage that the service is to have by itself now, in GB; undefined while it is to have what it has. */
export function autoscaleTargetGb(
  { metadata, spec, status }: ManagedServiceObject,
  { nodes }: ObservedService,
  now: number,
): number | undefined {
  const { enabled, maxGb } = autoscaleOf(spec);
  const { storageSizeGb, resizing, trial, succession } = spec;
  if (!enabled || maxGb === null || storageSizeGb >= maxGb) return undefined;
  if (metadata.deletionRequestedAt !== undefined || metadata.managedBy !== undefined) return undefined;
  const isBusy =
    status.operationId !== null || resizing !== undefined || trial !== undefined || succession !== undefined;
  if (isBusy || spec.power === "off" || (status.state !== "Running" && status.state !== "Error")) return undefined;
  // What is told of a disk that has not its size yet is of the one before.
  const isLow = nodes.some(
    ({ instance, connected, isCurrent }) =>
      connected &&
      isCurrent &&
      instance !== undefined &&
      instance.storageLevel >= growsAt &&
      instance.diskBytes > 0n &&
      fillsDisk(Number(instance.diskBytes), storageSizeGb * gib),
  );
  if (!isLow || (waitsMs(status.autoscale, storageSizeGb, now) ?? 0) > 0) return undefined;
  return Math.min(maxGb, storageSizeGb + Math.max(1, Math.ceil(storageSizeGb * growthShare)));
}

/** Pure: when one that came to nothing is tried again; null while there is none. */
export function autoscaleDueInMs({ spec, status }: ManagedServiceObject, now: number): number | null {
  if (!autoscaleOf(spec).enabled) return null;
  const waits = waitsMs(status.autoscale, spec.storageSizeGb, now);
  return waits === null ? null : Math.max(1, waits);
}

function waitsMs(memory: AutoscaleMemory | undefined, storageSizeGb: number, now: number): number | null {
  if (memory === undefined || storageSizeGb >= memory.toGb) return null;
  return memory.at + retryAfterMs - now;
}
