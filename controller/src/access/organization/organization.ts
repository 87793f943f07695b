import { nameKeyOf, type Resource, type Stored } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { defineKind } from "#kernel/store/kind.ts";

export type Organization = Resource<OrganizationSpec, Readonly<Record<string, never>>>;

export const organizationKind = defineKind<Organization>("organization", {
  globalNames: "operators alone claim one, for a recovery that finds the organization by it",
  indexes: [makerOfOrganization],
});

/** Index: the organizations that one person made. */
export function makerOfOrganization({ spec }: Organization): string | undefined {
  return spec.maker;
}

export interface OrganizationSpec {
  /** Limits that an operator set, by the name of the quota; of the others the default holds. */
  readonly quota: Readonly<Partial<Record<string, number>>>;
  /** The person who made it: all organizations of one person share the quota of one. Absent for an operator's. */
  readonly maker?: string;
  /**
   * The name is its members' choice: nothing claims it, so others may have the same, and none is found by it. Absent:
   * the name is claimed, as operators make organizations and earlier versions made all of them.
   */
  readonly ownName?: true;
}

/** Releases the name if the organization has its claim: a namesake's claim stays. */
export async function releaseClaim(
  unit: UnitOfWork,
  store: Pick<Store, "get">,
  { id, name }: Organization["metadata"],
  signal: AbortSignal,
): Promise<void> {
  const key = nameKeyOf(organizationKind, "", name);
  const claim = await store.get(key, signal);
  if (claim?.value !== id) return;
  unit.onlyWhile({ key, modRevision: claim.modRevision });
  unit.releaseName(organizationKind, "", name);
}

/**
 * Writes the organization again as it was read: two callers that count its objects and add one at once collide, and the
 * second counts again.
 */
export function touch(unit: UnitOfWork, organization: Stored<Organization>, now: number): void {
  const { object } = organization;
  unit.update(organizationKind, organization, { ...object, metadata: { ...object.metadata, updatedAt: now } });
}
