import type { Resource, Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { defineKind } from "#kernel/store/kind.ts";

export type Organization = Resource<OrganizationSpec, Readonly<Record<string, never>>>;

export const organizationKind = defineKind<Organization>("organization", { indexes: [makerOfOrganization] });

/** Index: the organizations that one person made. */
export function makerOfOrganization({ spec }: Organization): string | undefined {
  return spec.maker;
}

export interface OrganizationSpec {
  /** Limits that an operator set, by the name of the quota; of the others the default holds. */
  readonly quota: Readonly<Partial<Record<string, number>>>;
  /** The person who made it: all organizations of one person share the quota of one. Absent for an operator's. */
  readonly maker?: string;
}

/**
 * Writes the organization again as it was read: two callers that count its objects and add one at once collide, and the
 * second counts again.
 */
export function touch(unit: UnitOfWork, organization: Stored<Organization>, now: number): void {
  const { object } = organization;
  unit.update(organizationKind, organization, { ...object, metadata: { ...object.metadata, updatedAt: now } });
}
