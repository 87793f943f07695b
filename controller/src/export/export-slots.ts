/** How many streams may be worked on at once, on one controller. */
export interface ExportLimits {
  readonly total: number;
  readonly organization: number;
  /** All that fail have this part of the total, and those of an organization this part of what it has. */
  readonly failingPart: number;
}

const exportLimits: ExportLimits = { total: 64, organization: 8, failingPart: 1 / 4 };

/** Shares the streams out, so that neither a dead destination nor one organization delays the others. */
export interface ExportSlots {
  /** A function that gives the slots back; undefined while there are none for it. */
  take(organizationId: string, streams: number, isFailing: boolean): (() => void) | undefined;
}

interface Used {
  all: number;
  failing: number;
}

export function createExportSlots(limits: ExportLimits = exportLimits): ExportSlots {
  const { total, organization, failingPart } = limits;
  const used: Used = { all: 0, failing: 0 };
  const byOrganization = new Map<string, Used>();

  return {
    take(organizationId, streams, isFailing) {
      const own = byOrganization.get(organizationId) ?? { all: 0, failing: 0 };
      const fits = (each: Used, limit: number) =>
        each.all + streams <= limit && (!isFailing || each.failing + streams <= limit * failingPart);
      if (!fits(used, total) || !fits(own, organization)) return undefined;
      const add = (amount: number) => {
        for (const each of [used, own]) {
          each.all += amount;
          if (isFailing) each.failing += amount;
        }
      };
      byOrganization.set(organizationId, own);
      add(streams);
      return () => {
        add(-streams);
        if (own.all === 0) byOrganization.delete(organizationId);
      };
    },
  };
}

/** An integration that failed so often in a row takes its slots from those of the failing. */
export const failuresSoon = 3;
