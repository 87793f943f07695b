import { nameKeyOf, type Resource, type Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import type { Store } from "#kernel/store/store.ts";
import { defineKind } from "#kernel/store/kind.ts";

export type Organization = Resource<OrganizationSpec, Readonly<Record<string, never>>>;

export const organizationKind = defineKind<Organization>("organization", {
  globalNames: "operators alone claim one, for a recovery that finds the organization by it",
  indexes: [creatorOfOrganization],
  storedNames: { "spec.creator": "maker" },
});

/** Index: the organizations that one person created. */
export function creatorOfOrganization({ spec }: Organization): string | undefined {
  return spec.creator;
}

export interface OrganizationSpec {
  /** Limits that an operator set, by quota name; other quotas have their default. */
  readonly quota: Readonly<Partial<Record<string, number>>>;
  /** The person who created it: all organizations of one person share one quota. Absent for an operator's. */
  readonly creator?: string;
  /**
   * True when members chose the name: it is not claimed, so others may have the same. Absent: the name is claimed, as
   * operators create organizations.
   */
  readonly ownName?: true;
}

/** Releases the name if this organization claimed it; another organization's claim stays. */
export async function releaseClaim(
  unit: Changes,
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
 * Writes the organization unchanged, so that two callers that count its objects and add one at once conflict, and the
 * second counts again.
 */
export function touch(unit: Changes, organization: Stored<Organization>, now: number): void {
  const { object } = organization;
  unit.update(organizationKind, organization, { ...object, metadata: { ...object.metadata, updatedAt: now } });
}
