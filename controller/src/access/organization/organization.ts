import type { Resource, Stored } from "../../store/resource.ts";
import type { UnitOfWork } from "../../store/unit-of-work.ts";

export type Organization = Resource<OrganizationSpec, Readonly<Record<string, never>>>;

export interface OrganizationSpec {
  /** What differs from the default. */
  readonly quota: Partial<Quota>;
}

/** How much of each an organization may have. */
export type Quota = Readonly<Record<QuotaName, number>>;

export const quotaNames = ["services", "storageGb", "members", "apiKeys", "tokens", "webhooks"] as const;
export type QuotaName = (typeof quotaNames)[number];

const defaultQuota: Quota = {
  services: 100,
  storageGb: 102_400,
  members: 200,
  apiKeys: 200,
  tokens: 1_000,
  webhooks: 20,
};

/** What an operator set, over the defaults. */
export function quotaOf({ spec }: Organization): Quota {
  return { ...defaultQuota, ...spec.quota };
}

/**
 * Writes the organization again as it was read: two who count what it has and add to it at once collide, and the second
 * counts again.
 */
export function touch(unit: UnitOfWork, organization: Stored<Organization>, now: number): void {
  const { object } = organization;
  unit.update("organization", organization, { ...object, metadata: { ...object.metadata, updatedAt: now } });
}
