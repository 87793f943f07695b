import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";

/** How far a service's descriptor in the store is; its id is the service's. Written before the store is, so that nothing there is forgotten. */
export type DescriptionObject = Resource<Readonly<Record<string, never>>, DescriptionStatus>;

export const descriptionKind = defineKind<DescriptionObject>("service-description");

interface DescriptionStatus {
  /** Of the newest descriptor that was begun; each has a number of its own. */
  readonly number: number;
  readonly term: number;
  /** Of the newest one that is stored; empty before. */
  readonly digest: string;
}

export function newDescription(serviceId: string, organizationId: string, now: number): DescriptionObject {
  return {
    metadata: newMetadata(serviceId, now, { organizationId }),
    spec: {},
    status: { number: 0, term: 0, digest: "" },
  };
}
