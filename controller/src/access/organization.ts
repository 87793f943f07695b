import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Resource, Stored } from "../store/resource.ts";
import type { UnitOfWork } from "../store/unit-of-work.ts";

export type Organization = Resource<OrganizationSpec, OrganizationStatus>;

export interface OrganizationSpec {
  /** What differs from the default. */
  readonly quota: Partial<Quota>;
}

export interface OrganizationStatus {
  /** Services that exist, counted in the transactions that make and remove them. */
  readonly services: number;
}

/** How many of each an organization may have. */
export type Quota = Readonly<Record<"services" | "members" | "apiKeys" | "tokens" | "webhooks", number>>;

export const defaultQuota: Quota = { services: 100, members: 200, apiKeys: 200, tokens: 1_000, webhooks: 50 };

export function quotaOf({ spec }: Organization): Quota {
  return { ...defaultQuota, ...spec.quota };
}

/** Throws QUOTA_EXCEEDED with the figure when one more is too many. */
export function requireRoom(organization: Organization, what: keyof Quota, used: number): void {
  const quota = quotaOf(organization)[what];
  if (used < quota) return;
  const name = what === "apiKeys" ? "API keys" : what;
  throw new HoldfastError("QUOTA_EXCEEDED", `The organization has ${used} of ${quota} ${name}.`, {
    members: { quota, used },
  });
}

/**
 * Writes the organization again as it was read: two who count what it has and add to it at once collide, and the second
 * counts again.
 */
export function touch(unit: UnitOfWork, organization: Stored<Organization>, now: number): void {
  const { object } = organization;
  unit.update("organization", organization, { ...object, metadata: { ...object.metadata, updatedAt: now } });
}
