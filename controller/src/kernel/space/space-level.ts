import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";

/**
 * Fill level of a store with a quota in bytes: logged when it changes; additions of users are refused when little room
 * remains.
 */
export interface SpaceLevel {
  /** Part of the quota that is in use; 0 until it is known. */
  readonly used: number;
  note(usedBytes: number): void;
  /** Throws STORE_UNAVAILABLE when users may add nothing more; deletions, and the platform's own writes, go on. */
  admitGrowth(): void;
}

/** Parts of the quota: from `alarmAt` on it is told and room is made, from `refuseAt` on users add nothing. */
export const alarmAt = 0.6;
export const refuseAt = 0.8;

/** `name` is the store's name in messages: "etcd". */
export function createSpaceLevel(name: string, quotaBytes: number, log: Log): SpaceLevel {
  let used = 0;
  let told: "well" | "alarm" | "full" = "well";

  function tell(): void {
    const now = used >= refuseAt ? "full" : used >= alarmAt ? "alarm" : "well";
    if (now === told) return;
    const fields = { usedPct: Math.round(used * 100), quotaBytes };
    if (now === "full") log.error(`${name} is nearly full: users may only delete`, fields);
    else if (now === "alarm") log.warn(`${name} fills up`, fields);
    else log.info(`${name} has room again`, fields);
    told = now;
  }

  return {
    get used() {
      return used;
    },
    note(usedBytes) {
      used = usedBytes / quotaBytes;
      tell();
    },
    admitGrowth() {
      if (used < refuseAt) return;
      const detail = `${name} has used ${Math.round(used * 100)}% of its space. Deleting is possible; an operator has to make room.`;
      throw new HoldfastError("STORE_UNAVAILABLE", detail, { retryAfterS: 60 });
    },
  };
}
