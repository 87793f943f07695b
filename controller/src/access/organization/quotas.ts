import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { definePart } from "#kernel/part.ts";
import type { CollectionSet, OpenKind } from "#kernel/store/collection-set.ts";
import { ofOrganization } from "#kernel/store/collection.ts";
import { type Quota, requireAmount, usedOf } from "#kernel/store/quota.ts";
import type { Resource } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { creatorOfOrganization, type Organization, organizationKind, touch } from "./organization.ts";

/** Amounts by quota name. */
export type Amounts = Readonly<Record<string, number>>;

/** Counts an organization's objects against the quotas of their kinds. Every creation claims its amounts here. */
export interface Quotas {
  /** Every quota of organizations. */
  all(): readonly Pick<Quota<unknown>, "name" | "limitMax">[];
  /** Usage of the organization, as this replica sees it. */
  usage(organizationId: string): Amounts;
  /** Limits of the organization: the values that an operator set, and defaults for the other quotas. */
  limits(organization: Organization): Amounts;
  /**
   * Throws QUOTA_EXCEEDED, or the error that the quota declares, with the figures if the amounts exceed a limit.
   * Otherwise the commit of the unit requires that no other writer has claimed amounts or changed the organization
   * since; after a Conflict the caller counts again.
   */
  claim(unit: Changes, organizationId: string, requested: Amounts): Promise<void>;
}

/** A quota, and the kinds that count toward it: kinds whose quotas have one name share its limit. */
interface Row {
  readonly quota: AnyQuota;
  readonly parts: readonly { readonly quota: AnyQuota; readonly collection: OpenKind["collection"] }[];
}

type AnyQuota = Quota<Resource<unknown, unknown>>;

export const quotasPart = definePart<Quotas>("quotas");

export function createQuotas(kinds: Pick<CollectionSet, "all" | "open">, clock: Clock): Quotas {
  const organizations = kinds.open(organizationKind);

  /** Quotas of all open kinds; other groups open their kinds later. */
  function rows(): Row[] {
    const parts = kinds
      .all()
      .flatMap(({ kind, collection }) =>
        kind.quotas.flatMap((quota) => (quota.ownerOf === undefined ? [{ quota, collection }] : [])),
      );
    return [...Map.groupBy(parts, ({ quota }) => quota.name).values()].flatMap((shared) =>
      shared[0] === undefined ? [] : { quota: shared[0].quota, parts: shared },
    );
  }

  function usageOf(organizationId: string, { parts }: Row): number {
    return parts.reduce(
      (sum, { quota, collection }) => sum + usedOf(quota, ofOrganization(collection, organizationId)),
      0,
    );
  }

  function limitOf({ quota }: Row, { spec }: Organization): number {
    return lookUp(spec.quota, quota.name) ?? quota.limit;
  }

  const amounts = (amountOf: (row: Row) => number): Amounts =>
    Object.fromEntries(rows().map((row) => [row.quota.name, amountOf(row)]));

  /**
   * Organizations that one user created share the default limits of one, plus the additions by operators to each.
   */
  function requireShared({ spec: { creator } }: Organization, row: Row, requested: number): void {
    if (creator === undefined || row.quota.isPerOrganization === true) return;
    const ofCreator = organizations.by(creatorOfOrganization, creator).map(({ object }) => object);
    if (ofCreator.length < 2) return;
    const additions = ofCreator.map((each) => Math.max(0, limitOf(row, each) - row.quota.limit));
    const limit = additions.reduce((sum, each) => sum + each, row.quota.limit);
    const used = ofCreator.reduce((sum, { metadata }) => sum + usageOf(metadata.id, row), 0);
    requireAmount(row.quota, { used, requested, limit }, "All organizations of the user who created this one have");
  }

  return {
    all: () => rows().map(({ quota }) => quota),
    usage: (organizationId) => amounts((row) => usageOf(organizationId, row)),
    limits: (organization) => amounts((row) => limitOf(row, organization)),
    async claim(unit, organizationId, requested) {
      const organization = organizations.get(organizationId);
      if (organization === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", "The organization was deleted.");
      const allRows = rows();
      const claimed = Object.entries(requested).flatMap(([name, amount]) => {
        const row = allRows.find(({ quota }) => quota.name === name);
        if (row === undefined) throw new Error(`no kind declares the quota ${name}`);
        return amount > 0 ? [{ row, amount }] : [];
      });
      // Each claim writes the organization, so objects up to its revision include everything that was claimed before.
      const collections = claimed.flatMap(({ row }) => row.parts.map(({ collection }) => collection));
      await Promise.all(collections.map((collection) => collection.untilRevision(organization.modRevision, 1_000)));
      for (const { row, amount } of claimed) {
        const used = usageOf(organizationId, row);
        const limit = limitOf(row, organization.object);
        requireAmount(row.quota, { used, requested: amount, limit }, "The organization has");
      }
      for (const { row, amount } of claimed) requireShared(organization.object, row, amount);
      touch(unit, organization, clock.now());
    },
  };
}
