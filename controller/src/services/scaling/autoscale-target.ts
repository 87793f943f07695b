import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ObservedService } from "../service/reconcile/observed-service.ts";
import { fillsDisk } from "./size-plan.ts";
import { type LastGrowth, autoscaleOf } from "./storage-autoscale.ts";

const gib = 1024 ** 3;

/** Percent of the disk at which storage grows. */
const growthThresholdPct = 85;
/** Growth as a share of the current storage, at least 1 GB. */
const growthShare = 0.25;
/** Delay until a growth that was refused or rolled back is retried. */
const retryDelayMs = 10 * 60_000;

/** The storage that the service should grow to now, in GB; undefined if it should not grow. */
export function autoscaleTargetGb(
  { metadata, spec, status }: ManagedServiceObject,
  { nodes }: ObservedService,
  now: number,
): number | undefined {
  const { enabled, maxGb } = autoscaleOf(spec);
  const { storageSizeGb, resizing, canary, primaryChange } = spec;
  if (!enabled || maxGb === null || storageSizeGb >= maxGb) return undefined;
  if (metadata.deletionRequestedAt !== undefined) return undefined;
  const isBusy =
    status.operationId !== null || resizing !== undefined || canary !== undefined || primaryChange !== undefined;
  if (isBusy || spec.power === "off" || (status.state !== "Running" && status.state !== "Error")) return undefined;
  // Until the file system has grown, the reported level is of the smaller disk.
  const isLow = nodes.some(
    ({ instance, connected, isCurrent }) =>
      connected &&
      isCurrent &&
      instance !== undefined &&
      instance.storageLevel >= growthThresholdPct &&
      instance.diskBytes > 0n &&
      fillsDisk(Number(instance.diskBytes), storageSizeGb * gib),
  );
  if (!isLow || (pauseMs(status.autoscale, storageSizeGb, now) ?? 0) > 0) return undefined;
  return Math.min(maxGb, storageSizeGb + Math.max(1, Math.ceil(storageSizeGb * growthShare)));
}

/** Milliseconds until a failed growth is retried; null if there is none. */
export function autoscaleDueInMs({ spec, status }: ManagedServiceObject, now: number): number | null {
  if (!autoscaleOf(spec).enabled) return null;
  const waits = pauseMs(status.autoscale, spec.storageSizeGb, now);
  return waits === null ? null : Math.max(1, waits);
}

function pauseMs(record: LastGrowth | undefined, storageSizeGb: number, now: number): number | null {
  if (record === undefined || storageSizeGb >= record.toGb) return null;
  return record.at + retryDelayMs - now;
}
