import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";

/**
 * Number and digest of a service's newest stored descriptor; the id is the service's. The record is written before the
 * descriptor, so that each descriptor in the object store has a record.
 */
export type DescriptorSyncObject = Resource<Readonly<Record<string, never>>, DescriptorSyncStatus>;

export const descriptorSyncKind = defineKind<DescriptorSyncObject>("service-description");

interface DescriptorSyncStatus {
  /** Number of the newest descriptor whose write began; numbers are unique for a service. */
  readonly number: number;
  readonly term: number;
  /** Digest of the newest stored descriptor (`digestOf`); empty before the first. */
  readonly digest: string;
}

export function newDescriptorSync(serviceId: string, organizationId: string, now: number): DescriptorSyncObject {
  return {
    metadata: newMetadata(serviceId, now, { organizationId }),
    spec: {},
    status: { number: 0, term: 0, digest: "" },
  };
}
