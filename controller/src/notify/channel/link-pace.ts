import { createHash } from "node:crypto";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, nextMetadata, type Resource } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";

/** When links were asked for, of an organization or of an address. */
export type LinkPaceObject = Resource<{ readonly askedAt: readonly number[] }, object>;

export const linkPaceKind = defineKind<LinkPaceObject>("channel-link-pace");

const dayMs = 24 * 3_600_000;
/** In a day. The receiver of these mails may not have asked for them. */
const most = { organization: 40, address: 5 } as const;

/** Bounds how many mails strangers can be sent through the platform. */
export interface LinkPace {
  /** Throws RATE_LIMITED; otherwise the unit commits only if nobody asked for another link meanwhile. */
  claim(unit: UnitOfWork, organizationId: string, address: string): void;
  /** Forgets what is over a day old. */
  sweep(signal: AbortSignal): Promise<void>;
}

export function createLinkPace(deps: {
  readonly linkPaces: Collection<LinkPaceObject>;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
}): LinkPace {
  const { linkPaces, clock } = deps;

  function take(unit: UnitOfWork, id: string, limit: number, whose: string): void {
    const now = clock.now();
    const before = linkPaces.get(id);
    const recent = (before?.object.spec.askedAt ?? []).filter((at) => at > now - dayMs);
    const oldest = recent[0];
    if (recent.length >= limit && oldest !== undefined)
      throw new HoldfastError("RATE_LIMITED", `${whose} at most ${limit} confirmation links in 24 hours.`, {
        retryAfterS: Math.ceil((oldest + dayMs - now) / 1_000),
      });
    const spec = { askedAt: [...recent, now] };
    if (before === undefined) unit.create(linkPaceKind, { metadata: newMetadata(id, now, {}), spec, status: {} });
    else
      unit.update(linkPaceKind, before, {
        ...before.object,
        metadata: nextMetadata(before.object.metadata, now),
        spec,
      });
  }

  return {
    claim(unit, organizationId, address) {
      take(unit, `organization-${organizationId}`, most.organization, "An organization asks for");
      const hash = createHash("sha256").update(address.toLowerCase()).digest("hex");
      take(unit, `address-${hash.slice(0, 40)}`, most.address, "An address is sent");
    },
    async sweep(signal) {
      for (const stored of linkPaces.values()) {
        if (stored.object.spec.askedAt.some((at) => at > clock.now() - dayMs)) continue;
        const unit = deps.begin();
        unit.remove(linkPaceKind, stored);
        await unit.commit(signal).catch(() => undefined);
      }
    },
  };
}
