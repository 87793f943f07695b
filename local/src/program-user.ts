import { readFileSync } from "node:fs";
import { uidOf } from "@holdfast/compute/local/machine-number.ts";

/** User of etcd and history. */
export interface ProgramUser {
  readonly uid: number;
  /** True if this process is root, and can switch users. */
  readonly asRoot: boolean;
}

/** First user id: no user of the host has it. Each installation has another id and cannot read files of others. */
const firstUid = 1_900_000_000;

export function programUser(loopbackBlock: string, asRoot: boolean): ProgramUser {
  return { uid: firstUid + Number(loopbackBlock.split(".")[1]), asRoot };
}

/** Numbers that end in 255 are no machine's, so that no machine has this user. */
const dataPlaneNumber = 255;

/** User of programs of other authors that data planes run. */
export function dataPlaneUid(loopbackBlock: string): number {
  return uidOf(loopbackBlock, dataPlaneNumber, readFileSync("/proc/self/uid_map", "utf8"));
}
