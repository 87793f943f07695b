import { alarmAt, refuseAt } from "./space-level.ts";

/** What operators see of the space of etcd's members and of the history. */
export interface StoreSpace {
  /** "etcd http://10.0.0.1:2379", "history". */
  readonly name: string;
  /** Undefined when it does not answer. */
  readonly usedBytes: number | undefined;
  /** Size of its file on the disk; the history has no file of its own. */
  readonly fileBytes?: number;
  readonly quotaBytes: number;
  /** etcd stopped all writing when its file reached the quota. */
  readonly noSpace?: boolean;
}

export type SpaceState = "ok" | "alarm" | "full" | "no-space" | "unknown";

const reasons: Record<SpaceState, string> = {
  ok: "",
  alarm: `More than ${alarmAt * 100}% is in use.`,
  full: `More than ${refuseAt * 100}% is in use: users may only delete.`,
  "no-space": "NOSPACE: etcd has stopped all writing. Run `holdfast admin free-etcd`.",
  unknown: "It does not answer.",
};

/** The state, and its meaning for operators. */
export function stateOfSpace({ usedBytes, quotaBytes, noSpace }: StoreSpace): { state: SpaceState; reason: string } {
  const part = (usedBytes ?? 0) / quotaBytes;
  const unknown = usedBytes === undefined;
  const level = part >= refuseAt ? "full" : part >= alarmAt ? "alarm" : "ok";
  const state = noSpace === true ? "no-space" : unknown ? "unknown" : level;
  return { state, reason: reasons[state] };
}
