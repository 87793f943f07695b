/** Capacity of one controller for calls to targets that users choose, and its division among organizations. */
export interface SlotLimits {
  readonly total: number;
  readonly organization: number;
  /** Fraction of `total`, and of `organization`, that unhealthy targets may use together. */
  readonly unhealthyShare: number;
}

/**
 * Number of further slots for a holder of `used` slots while `free` are left: it grows up to a quarter of what is then
 * still free, or to one. However many holders take their full share, some slots remain for the next one.
 */
export function fairShare(free: number, used: number): number {
  return Math.max(0, Math.ceil((free - 4 * used) / 5));
}

/** Slots in flight, overall and per organization, and how many of them belong to unhealthy targets. */
export interface SlotCounts {
  /** Adds slots of an organization; a negative number releases them. */
  add(organizationId: string, slots: number, unhealthy: boolean): void;
  /** Number of further slots for a target of the organization that has `used` slots. */
  available(organizationId: string, used: number, unhealthy: boolean): number;
  /** True when no slot is free. */
  readonly full: boolean;
}

interface Count {
  all: number;
  unhealthy: number;
}

export function createSlotCounts({ total, organization, unhealthyShare }: SlotLimits): SlotCounts {
  const unhealthyLimits = {
    total: Math.floor(total * unhealthyShare),
    organization: Math.floor(organization * unhealthyShare),
  };
  const sum: Count = { all: 0, unhealthy: 0 };
  const byOrganization = new Map<string, Count>();

  return {
    add(organizationId, slots, unhealthy) {
      const own = byOrganization.get(organizationId) ?? { all: 0, unhealthy: 0 };
      for (const count of [sum, own]) {
        count.all += slots;
        if (unhealthy) count.unhealthy += slots;
      }
      if (own.all === 0) byOrganization.delete(organizationId);
      else byOrganization.set(organizationId, own);
    },
    available(organizationId, used, unhealthy) {
      const own = byOrganization.get(organizationId) ?? { all: 0, unhealthy: 0 };
      const free = Math.min(organization - own.all, fairShare(total - sum.all, own.all));
      const fair = fairShare(free, used);
      if (!unhealthy) return fair;
      return Math.min(fair, unhealthyLimits.organization - own.unhealthy, unhealthyLimits.total - sum.unhealthy);
    },
    get full() {
      return sum.all >= total;
    },
  };
}
