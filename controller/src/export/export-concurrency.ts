import { createFairShare, type FairShareLimits } from "@holdfast/common/concurrency/fair-share.ts";

/** Numbers of streams that one controller runs concurrently. */
const exportLimits: FairShareLimits = { total: 64, organization: 8, unhealthyShare: 1 / 4 };

/** State of a destination: its last tick succeeded, it has not accepted any item yet, or its last tick failed. */
export type Standing = "healthy" | "new" | "failing";

/**
 * Limits concurrent streams, so that neither unreachable destinations, failing or new, nor one organization delay the
 * others.
 */
export interface ExportConcurrency {
  /** A permit for at least one of the requested streams; undefined while there is no capacity. */
  take(organizationId: string, requested: number, standing: Standing): ExportPermit | undefined;
}

export interface ExportPermit {
  readonly count: number;
  release(): void;
}

/**
 * Failing destinations share a quarter of all streams, new ones half, and both a quarter of their organization's; the
 * remainder is for healthy ones.
 */
export function createExportConcurrency(limits: FairShareLimits = exportLimits): ExportConcurrency {
  const all = createFairShare(limits);
  const { total, organization } = limits;
  const untested = createFairShare({ total: total / 2, organization: organization / 4, unhealthyShare: 1 });

  function capacity(organizationId: string, standing: Standing): number {
    const free = all.available(organizationId, 0, standing === "failing");
    return standing === "new" ? Math.min(free, untested.available(organizationId, 0, false)) : free;
  }

  function add(organizationId: string, count: number, standing: Standing): void {
    all.add(organizationId, count, standing === "failing");
    if (standing === "new") untested.add(organizationId, count, false);
  }

  return {
    take(organizationId, requested, standing) {
      const count = Math.min(requested, capacity(organizationId, standing));
      if (count <= 0) return undefined;
      add(organizationId, count, standing);
      return { count, release: () => add(organizationId, -count, standing) };
    },
  };
}
