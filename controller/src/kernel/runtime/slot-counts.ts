/** How much of something one controller has, and how it is shared among those who call where users say. */
export interface SharedSlots {
  readonly total: number;
  readonly organization: number;
  /** All that are unwell have this part of the total, and those of an organization this part of what it may have. */
  readonly unwellPart: number;
}

/**
 * How much more one may take that has `used` of something of which `free` is left, so that nobody comes to hold more than a
 * quarter of what is then still free, or one: however many take all that they get, there is something left for who comes next.
 */
export function fairRoom(free: number, used: number): number {
  return Math.max(0, Math.ceil((free - 4 * used) / 5));
}

/** What is in flight, in all and of each organization, and how much of it belongs to those that are unwell. */
export interface SlotCounts {
  /** So many more of the organization; fewer when negative. */
  add(organizationId: string, slots: number, unwell: boolean): void;
  /** How much more one of the organization may take beside the `used` that it has. */
  room(organizationId: string, used: number, unwell: boolean): number;
  /** Nobody may take anything. */
  readonly full: boolean;
}

interface Count {
  all: number;
  unwell: number;
}

export function createSlotCounts({ total, organization, unwellPart }: SharedSlots): SlotCounts {
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
