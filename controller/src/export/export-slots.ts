import { createSlotCounts, type SharedSlots } from "#kernel/runtime/slot-counts.ts";

/** How many streams may be worked on at once, on one controller. */
const exportLimits: SharedSlots = { total: 64, organization: 8, unwellPart: 1 / 4 };

/** What is known of a destination: it took something and fails not, it took nothing yet, or it failed last. */
export type Standing = "well" | "new" | "failing";

/** Shares the streams out, so that neither dead destinations, known or new, nor one organization delay the others. */
export interface ExportSlots {
  /** Some of the slots that are wanted, at least one; undefined while there is none for it. */
  take(organizationId: string, wanted: number, standing: Standing): TakenSlots | undefined;
}

export interface TakenSlots {
  readonly count: number;
  release(): void;
}

/**
 * The failing have a quarter of all slots, the new half of them, and both a quarter of their organization's: the rest is for those
 * that are well.
 */
export function createExportSlots(limits: SharedSlots = exportLimits): ExportSlots {
  const all = createSlotCounts(limits);
  const { total, organization } = limits;
  const news = createSlotCounts({ total: total / 2, organization: organization / 4, unwellPart: 1 });

  function room(organizationId: string, standing: Standing): number {
    const free = all.room(organizationId, 0, standing === "failing");
    return standing === "new" ? Math.min(free, news.room(organizationId, 0, false)) : free;
  }

  function add(organizationId: string, count: number, standing: Standing): void {
    all.add(organizationId, count, standing === "failing");
    if (standing === "new") news.add(organizationId, count, false);
  }

  return {
    take(organizationId, wanted, standing) {
      const count = Math.min(wanted, room(organizationId, standing));
      if (count <= 0) return undefined;
      add(organizationId, count, standing);
      return { count, release: () => add(organizationId, -count, standing) };
    },
  };
}
