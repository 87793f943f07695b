import { createSlotCounts, type SharedSlots } from "#kernel/runtime/slot-counts.ts";

/** How many streams may be worked on at once, on one controller. */
const exportLimits: SharedSlots = { total: 64, organization: 8, unwellPart: 1 / 4 };

/** Shares the streams out, so that neither a dead destination nor one organization delays the others. */
export interface ExportSlots {
  /** Some of the slots that are wanted, at least one; undefined while there is none for it. */
  take(organizationId: string, wanted: number, isFailing: boolean): TakenSlots | undefined;
}

export interface TakenSlots {
  readonly count: number;
  release(): void;
}

export function createExportSlots(limits: SharedSlots = exportLimits): ExportSlots {
  const counts = createSlotCounts(limits);
  return {
    take(organizationId, wanted, isFailing) {
      const count = Math.min(wanted, counts.room(organizationId, 0, isFailing));
      if (count <= 0) return undefined;
      counts.add(organizationId, count, isFailing);
      return { count, release: () => counts.add(organizationId, -count, isFailing) };
    },
  };
}

/** An integration that failed so often in a row takes its slots from those of the failing: it may take minutes to fail again. */
export const failuresSoon = 1;
