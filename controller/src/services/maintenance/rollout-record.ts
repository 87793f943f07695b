import { newMetadata, type Resource } from "#kernel/store/resource.ts";
import { defineKind } from "#kernel/store/kind.ts";

/** Shared record of automatic maintenance. There is one object, changed by compare-and-set only. */
export type RolloutRecord = Resource<object, RolloutRecordStatus>;

export const rolloutRecordKind = defineKind<RolloutRecord>("maintenance-brake", {
  storedNames: { "status.inFlight": "underWay" },
});

export interface RolloutRecordStatus {
  /** Ids of automatically started operations; some may have ended. */
  readonly inFlight: readonly string[];
  /** Images that failed, newest first, with the services on which they failed. */
  readonly failed: readonly FailedImage[];
}

export interface FailedImage {
  readonly image: string;
  readonly services: readonly string[];
}

export const rolloutRecordId = "fleet";
const failedImagesMax = 5;
/** Maximum number of recorded services per image; maintenance is paused long before. */
const servicesPerImageMax = 20;

/** The initial record. */
export function newRolloutRecord(now: number): RolloutRecord {
  const id = rolloutRecordId;
  return {
    metadata: newMetadata(id, now),
    spec: {},
    status: { inFlight: [], failed: [] },
  };
}

/** Ids of the services on which an image failed. */
export function servicesFailedOn({ status }: RolloutRecord, image: string): readonly string[] {
  return status.failed.find((entry) => entry.image === image)?.services ?? [];
}

export function withInFlight(record: RolloutRecord, inFlight: readonly string[], now: number): RolloutRecord {
  return changed(record, { inFlight }, now);
}

/** The record with another failure. Each service counts once for an image. */
export function withFailure(record: RolloutRecord, image: string, serviceId: string, now: number): RolloutRecord {
  const before = servicesFailedOn(record, image).filter((id) => id !== serviceId);
  const others = record.status.failed.filter((entry) => entry.image !== image);
  const services = [serviceId, ...before].slice(0, servicesPerImageMax);
  return changed(record, { failed: [{ image, services }, ...others].slice(0, failedImagesMax) }, now);
}

function changed(record: RolloutRecord, change: Partial<RolloutRecordStatus>, now: number): RolloutRecord {
  const { metadata, status } = record;
  return { ...record, metadata: { ...metadata, updatedAt: now }, status: { ...status, ...change } };
}
