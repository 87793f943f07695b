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

/** Numbers whose last byte is 255 are no machine's, so that no machine has the user of a data plane's program. */
const dataPlaneNumber = (programNumber: number) => programNumber * 256 + 255;

/** User of a program of another author that a data plane runs. */
export function dataPlaneUid(loopbackBlock: string, programNumber = 0): number {
  return uidOf(loopbackBlock, dataPlaneNumber(programNumber), readFileSync("/proc/self/uid_map", "utf8"));
}
