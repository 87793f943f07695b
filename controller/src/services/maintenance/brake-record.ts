import { newMetadata, type Resource } from "#kernel/store/resource.ts";
import { defineKind } from "#kernel/store/kind.ts";

/** What all controllers count of maintenance that begins by itself. There is one, changed by compare-and-set alone. */
export type BrakeRecord = Resource<object, BrakeRecordStatus>;

export const brakeKind = defineKind<BrakeRecord>("maintenance-brake");

export interface BrakeRecordStatus {
  /** Operations that began by themselves; some of them may be over. */
  readonly underWay: readonly string[];
  /** Images that failed, the newest first, and the services on which they did. */
  readonly failed: readonly FailedImage[];
}

export interface FailedImage {
  readonly image: string;
  readonly services: readonly string[];
}

export const brakeRecordId = "fleet";
const imagesKept = 5;
/** Counted no further: the hold has been there for long. */
const servicesKept = 20;

/** Nothing is under way, and nothing has failed. */
export function newBrakeRecord(now: number): BrakeRecord {
  const id = brakeRecordId;
  return {
    metadata: newMetadata(id, now),
    spec: {},
    status: { underWay: [], failed: [] },
  };
}

/** Services on which the image failed. */
export function servicesThatRefused({ status }: BrakeRecord, image: string): readonly string[] {
  return status.failed.find((one) => one.image === image)?.services ?? [];
}

export function withUnderWay(record: BrakeRecord, underWay: readonly string[], now: number): BrakeRecord {
  return changed(record, { underWay }, now);
}

/** With one more failure; the same one counts once. */
export function withFailure(record: BrakeRecord, image: string, serviceId: string, now: number): BrakeRecord {
  const before = servicesThatRefused(record, image).filter((id) => id !== serviceId);
  const others = record.status.failed.filter((one) => one.image !== image);
  const services = [serviceId, ...before].slice(0, servicesKept);
  return changed(record, { failed: [{ image, services }, ...others].slice(0, imagesKept) }, now);
}

function changed(record: BrakeRecord, change: Partial<BrakeRecordStatus>, now: number): BrakeRecord {
  const { metadata, status } = record;
  return { ...record, metadata: { ...metadata, updatedAt: now }, status: { ...status, ...change } };
}
