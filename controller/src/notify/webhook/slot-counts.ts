import { fairRoom, type SlotLimits } from "./endpoint-share.ts";

/** What is in flight, in all and of each organization, and how much of it belongs to endpoints that are unwell. */
export interface SlotCounts {
  /** So many more of the organization; fewer when negative. */
  add(organizationId: string, slots: number, unwell: boolean): void;
  /** How much more an endpoint of the organization may take beside the `used` that it has. */
  room(organizationId: string, used: number, unwell: boolean): number;
  /** Nobody may take anything. */
  readonly full: boolean;
}

interface Count {
  all: number;
  unwell: number;
}

export function createSlotCounts({ total, organization, unwellPart }: SlotLimits): SlotCounts {
  const unwellLimits = { total: Math.floor(total * unwellPart), organization: Math.floor(organization * unwellPart) };
  const whole: Count = { all: 0, unwell: 0 };
  const byOrganization = new Map<string, Count>();

  return {
    add(organizationId, slots, unwell) {
      const own = byOrganization.get(organizationId) ?? { all: 0, unwell: 0 };
      for (const count of [whole, own]) {
        count.all += slots;
        if (unwell) count.unwell += slots;
      }
      if (own.all === 0) byOrganization.delete(organizationId);
      else byOrganization.set(organizationId, own);
    },
    room(organizationId, used, unwell) {
      const own = byOrganization.get(organizationId) ?? { all: 0, unwell: 0 };
      const free = Math.min(organization - own.all, fairRoom(total - whole.all, own.all));
      const fair = fairRoom(free, used);
      if (!unwell) return fair;
      return Math.min(fair, unwellLimits.organization - own.unwell, unwellLimits.total - whole.unwell);
    },
    get full() {
      return whole.all >= total;
    },
  };
}
