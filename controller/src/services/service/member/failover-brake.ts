import type { Hold } from "#kernel/clock/holds.ts";

/**
 * Pure: does an operator hold automatic failovers back? Holds against everything are about time, which a failover does not go by;
 * whether there is one is not known before the store was read.
 */
export function isBraked(holds: readonly Pick<Hold, "kind">[]): boolean {
  return holds.some(({ kind }) => kind === "failover" || kind === "unknown");
}
