import { createHash } from "node:crypto";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, nextMetadata, type Resource } from "#kernel/store/resource.ts";
import type { UnitOfWork, Changes } from "#kernel/store/unit-of-work.ts";

/** Recent requests for confirmation links of an organization or of an address. Times are milliseconds since 1970. */
export type LinkRateLimitObject = Resource<{ readonly requestedAt: readonly number[] }, object>;

export const linkRateLimitKind = defineKind<LinkRateLimitObject>("channel-link-pace", {
  storedNames: { "spec.requestedAt": "askedAt" },
});

const dayMs = 24 * 3_600_000;
/** Maximum numbers of links in 24 hours; receivers of these mails may not have requested them. */
const limits = { organization: 40, address: 5 } as const;

/** Limits the confirmation links to addresses whose holders have not agreed to get mail. */
export interface LinkRateLimit {
  /** Counts one link in the unit of work, which conflicts with a concurrent request. Throws RATE_LIMITED. */
  claim(unit: Changes, organizationId: string, address: string): void;
  /** Deletes counters older than a day. */
  sweep(signal: AbortSignal): Promise<void>;
}

export function createLinkRateLimit(deps: {
  readonly linkRateLimits: Collection<LinkRateLimitObject>;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
}): LinkRateLimit {
  const { linkRateLimits, clock } = deps;

  function take(unit: Changes, id: string, limit: number, subject: string): void {
    const now = clock.now();
    const before = linkRateLimits.get(id);
    const recent = (before?.object.spec.requestedAt ?? []).filter((at) => at > now - dayMs);
    const oldest = recent[0];
    if (recent.length >= limit && oldest !== undefined)
      throw new HoldfastError("RATE_LIMITED", `${subject} at most ${limit} confirmation links in 24 hours.`, {
        retryAfterS: Math.ceil((oldest + dayMs - now) / 1_000),
      });
    const spec = { requestedAt: [...recent, now] };
    if (before === undefined) unit.create(linkRateLimitKind, { metadata: newMetadata(id, now, {}), spec, status: {} });
    else
      unit.update(linkRateLimitKind, before, {
        ...before.object,
        metadata: nextMetadata(before.object.metadata, now),
        spec,
      });
  }

  return {
    claim(unit, organizationId, address) {
      take(unit, `organization-${organizationId}`, limits.organization, "An organization can request");
      const hash = createHash("sha256").update(address.toLowerCase()).digest("hex");
      take(unit, `address-${hash.slice(0, 40)}`, limits.address, "An address gets");
    },
    async sweep(signal) {
      for (const stored of linkRateLimits.values()) {
        if (stored.object.spec.requestedAt.some((at) => at > clock.now() - dayMs)) continue;
        const unit = deps.begin();
        unit.remove(linkRateLimitKind, stored);
        await unit.commit(signal).catch(() => undefined);
      }
    },
  };
}
