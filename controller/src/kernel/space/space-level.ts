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
  /** Throws STORE_UNAVAILABLE when users may add nothing more. Deletions and the platform's own writes still work. */
  admitGrowth(): void;
}

/** Fractions of the quota: from `alarmAt` on it is logged and space is freed, from `refuseAt` on users add nothing. */
export const alarmAt = 0.6;
export const refuseAt = 0.8;

/** `name` is the store's name in messages, such as "etcd". */
export function createSpaceLevel(name: string, quotaBytes: number, log: Log): SpaceLevel {
  let used = 0;
  let reported: "well" | "alarm" | "full" = "well";

  function report(): void {
    const now = used >= refuseAt ? "full" : used >= alarmAt ? "alarm" : "well";
    if (now === reported) return;
    const fields = { usedPct: Math.round(used * 100), quotaBytes };
    if (now === "full") log.error(`${name} is nearly full: users may only delete`, fields);
    else if (now === "alarm") log.warn(`${name} fills up`, fields);
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
      const detail = `${name} has used ${Math.round(used * 100)}% of its space. Deleting is possible; an operator has to free space.`;
      throw new HoldfastError("STORE_UNAVAILABLE", detail, { retryAfterS: 60 });
    },
  };
}

/** Disk usage of one etcd member or of the history, for operators. */
export interface StoreSpace {
  /** "etcd http://10.0.0.1:2379" or "history". */
  readonly name: string;
  /** Undefined when it does not respond. */
  readonly usedBytes: number | undefined;
  /** Size of its file on disk; absent for the history. */
  readonly fileBytes?: number;
  readonly quotaBytes: number;
  /** True when etcd raised NOSPACE and stopped all writes because its file reached the quota. */
  readonly noSpace?: boolean;
}

type SpaceState = "ok" | "alarm" | "full" | "no-space" | "unknown";

const reasons: Record<SpaceState, string> = {
  ok: "",
  alarm: `More than ${alarmAt * 100}% is in use.`,
  full: `More than ${refuseAt * 100}% is in use: users may only delete.`,
  "no-space": "NOSPACE: etcd has stopped all writing. Run `holdfast admin free-etcd`.",
  unknown: "It does not respond.",
};

/** The state, and its explanation for operators. */
export function stateOfSpace({ usedBytes, quotaBytes, noSpace }: StoreSpace): { state: SpaceState; reason: string } {
  const part = (usedBytes ?? 0) / quotaBytes;
  const unknown = usedBytes === undefined;
  const level = part >= refuseAt ? "full" : part >= alarmAt ? "alarm" : "ok";
  const state = noSpace === true ? "no-space" : unknown ? "unknown" : level;
  return { state, reason: reasons[state] };
}
