import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Collection } from "../../store/collection.ts";
import type { UnitOfWork } from "../../store/unit-of-work.ts";
import type { AccessObjects } from "../access-objects.ts";
import { type Quota, type QuotaName, quotaNames, quotaOf, touch } from "./organization.ts";

/** The only way to more of what an organization may have so many of. */
export interface Quotas {
  /** What it has, as this replica sees it. */
  usage(organizationId: string): Quota;
  /**
   * Throws QUOTA_EXCEEDED or WEBHOOK_LIMIT_REACHED with the figures when this much more is too much. Otherwise the unit of
   * work commits only if nobody else has claimed or changed anything of the organization meanwhile: a Conflict counts again.
   */
  claim(unit: UnitOfWork, organizationId: string, asked: Partial<Quota>): Promise<void>;
}

/** As the API spells them. */
export const quotaFields = {
  services: "services",
  storageGb: "storage_gb",
  members: "members",
  apiKeys: "api_keys",
  tokens: "tokens",
  webhooks: "webhooks",
} as const satisfies Record<QuotaName, string>;

/** For people. */
const words: Readonly<Record<QuotaName, string>> = {
  ...quotaFields,
  storageGb: "GB of storage",
  apiKeys: "API keys",
};

export function createQuotas(
  deps: Pick<AccessObjects, "organizations" | "services" | "memberships" | "apiKeys" | "tokens" | "webhooks">,
  clock: Clock,
): Quotas {
  const { organizations, services, memberships, apiKeys, tokens, webhooks } = deps;
  const holders = { services, storageGb: services, members: memberships, apiKeys, tokens, webhooks };

  function usage(organizationId: string): Quota {
    const theirs = ofOrganization(services, organizationId);
    return {
      services: theirs.length,
      storageGb: theirs.reduce((sum, { spec }) => sum + spec.storageSizeGb, 0),
      members: ofOrganization(memberships, organizationId).length,
      apiKeys: ofOrganization(apiKeys, organizationId).length,
      tokens: ofOrganization(tokens, organizationId).length,
      webhooks: ofOrganization(webhooks, organizationId).length,
    };
  }

  return {
    usage,
    async claim(unit, organizationId, asked) {
      const organization = organizations.get(organizationId);
      if (organization === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", "The organization is gone.");
      // Whoever claimed last touched the organization: what it claimed must be counted.
      const names = quotaNames.filter((name) => (asked[name] ?? 0) > 0);
      await Promise.all(names.map((name) => holders[name].reached(organization.modRevision, 1_000)));
      const limits = quotaOf(organization.object);
      const has = usage(organizationId);
      for (const name of names) requireRoom(name, has[name], asked[name] ?? 0, limits[name]);
      touch(unit, organization, clock.now());
    },
  };
}

function requireRoom(name: QuotaName, used: number, asked: number, limit: number): void {
  if (used + asked <= limit) return;
  const key = name === "webhooks" ? "WEBHOOK_LIMIT_REACHED" : "QUOTA_EXCEEDED";
  throw new HoldfastError(key, `The organization has ${used} of ${limit} ${words[name]}; ${asked} more is too many.`, {
    members: { quota: quotaFields[name], used, asked, limit },
  });
}

function ofOrganization<R>(collection: Collection<R>, organizationId: string): R[] {
  const all = { after: undefined, limit: Number.POSITIVE_INFINITY, organizationId };
  const { items } = collection.page(() => true, all, { maxScanned: Number.POSITIVE_INFINITY });
  return items.map(({ object }) => object);
}
