import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";

/**
 * Fill level of a store with a quota in bytes. Changes of the level are logged; above `refuseAt` additions by users
 * are refused.
 */
export interface SpaceLevel {
  /** Used fraction of the quota; 0 until the first measurement. */
  readonly used: number;
  update(usedBytes: number): void;
  /** Throws STORE_UNAVAILABLE while users may only delete. Deletions and the platform's own writes still work. */
  admitGrowth(): void;
}

/**
 * Fractions of the quota: above `alarmAt` a warning is logged and space is freed, above `refuseAt` users may only
 * delete.
 */
export const alarmAt = 0.6;
export const refuseAt = 0.8;

/** `name` is the store's name in messages, such as "etcd". */
export function createSpaceLevel(name: string, quotaBytes: number, log: Log): SpaceLevel {
  let used = 0;
  let reported: "ok" | "alarm" | "full" = "ok";

  function report(): void {
    const now = used >= refuseAt ? "full" : used >= alarmAt ? "alarm" : "ok";
    if (now === reported) return;
    const fields = { usedPct: Math.round(used * 100), quotaBytes };
    if (now === "full") log.error(`${name} is nearly full: users may only delete`, fields);
    else if (now === "alarm") log.warn(`${name} is filling up`, fields);
    else log.info(`${name} has space again`, fields);
    reported = now;
  }

  return {
    get used() {
      return used;
    },
    update(usedBytes) {
      used = usedBytes / quotaBytes;
      report();
    },
    admitGrowth() {
      if (used < refuseAt) return;
      const detail = `${name} has used ${Math.round(used * 100)}% of its space. You can still delete objects; an operator has to free space.`;
      throw new HoldfastError("STORE_UNAVAILABLE", detail, { retryAfterS: 60 });
    },
  };
}

/** Disk usage of one etcd member or of the history, for operators. */
export interface StoreSpace {
  /** "etcd http://10.0.0.1:2379" or "history". */
  readonly name: string;
  /** Undefined if the store does not respond. */
  readonly usedBytes: number | undefined;
  /** Size of its file on disk; absent for the history. */
  readonly fileBytes?: number;
  readonly quotaBytes: number;
  /** True if etcd raised the alarm NOSPACE and refuses all writes, because its file reached the quota. */
  readonly noSpace?: boolean;
}

type SpaceState = "ok" | "alarm" | "full" | "no-space" | "unknown";

const reasons: Record<SpaceState, string> = {
  ok: "",
  alarm: `More than ${alarmAt * 100}% is in use.`,
  full: `More than ${refuseAt * 100}% is in use: users may only delete.`,
  "no-space": "etcd raised the alarm NOSPACE and refuses all writes. Run `holdfast admin free-etcd`.",
  unknown: "The store does not respond.",
};

/** The state, and its explanation for operators. */
export function stateOfSpace({ usedBytes, quotaBytes, noSpace }: StoreSpace): { state: SpaceState; reason: string } {
  const usedShare = (usedBytes ?? 0) / quotaBytes;
  const unknown = usedBytes === undefined;
  const level = usedShare >= refuseAt ? "full" : usedShare >= alarmAt ? "alarm" : "ok";
  const state = noSpace === true ? "no-space" : unknown ? "unknown" : level;
  return { state, reason: reasons[state] };
}
