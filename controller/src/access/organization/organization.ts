import { nameKeyOf, type Resource, type Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import type { Store } from "#kernel/store/store.ts";
import { defineKind } from "#kernel/store/kind.ts";

export type Organization = Resource<OrganizationSpec, Readonly<Record<string, never>>>;

export const organizationKind = defineKind<Organization>("organization", {
  globalNames: "only operators claim one, for a recovery that finds the organization by it",
  indexes: [creatorOfOrganization],
  storedNames: { "spec.creator": "maker" },
});

/** Index: the organizations that a user created. */
export function creatorOfOrganization({ spec }: Organization): string | undefined {
  return spec.creator;
}

export interface OrganizationSpec {
  /** Limits that an operator set, by quota name; other quotas have their default. */
  readonly quota: Readonly<Partial<Record<string, number>>>;
  /** The user who created it: all organizations that a user created share one quota. Absent if an operator did. */
  readonly creator?: string;
  /**
   * True if a member chose the name: it is not claimed, so another organization can have the same. Absent if an
   * operator chose it: it is claimed.
   */
  readonly ownName?: true;
}

/** Releases the name if this organization claimed it; the claim of another organization remains. */
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
 * Writes the organization unchanged, so that two callers that count its objects and concurrently add one conflict, and
 * the second counts again.
 */
export function touch(unit: Changes, organization: Stored<Organization>, now: number): void {
  const { object } = organization;
  unit.update(organizationKind, organization, { ...object, metadata: { ...object.metadata, updatedAt: now } });
}
