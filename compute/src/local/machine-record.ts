import type { MachineSpec } from "../compute-provider.ts";
import { readIfExists, writeAtomically } from "./atomic-file.ts";

/** Stored record of a machine: the file `machine.json`. A directory without it is an incomplete machine. */
export interface MachineRecord {
  readonly spec: MachineSpec;
  /** Number among the machines of this directory; determines address and user ids. */
  readonly number: number;
  readonly address: string;
  /** Absent if the machine has no public address. */
  readonly publicAddress?: string;
  /** User and group of the engine, from which the agent's user follows; null without root. */
  readonly uid: number | null;
  readonly disk: "loop" | "directory";
  readonly diskBytes: number;
  /** Size of the file system; below diskBytes until it has grown. */
  readonly formattedBytes: number;
  /** Id of the node image; empty for engines that the host has installed, absent before the first start. */
  readonly image?: string;
  /** Previous image, for a rollback, with the time of its replacement in milliseconds since 1970. */
  readonly previousImage?: { readonly id: string; readonly replacedAt: number };
  /** Id of a virtual machine's kernel; absent for containers, and before the first start has pinned one. */
  readonly guestKernel?: string;
  /** Previous kernel, as for images. */
  readonly previousGuestKernel?: { readonly id: string; readonly replacedAt: number };
  readonly starts: number;
  /** True while the instance is being created; after a kill it is created again. Absent once it exists. */
  readonly unfinished?: true;
  /** Time of creation, in milliseconds since 1970. */
  readonly createdAt: number;
}

/** Reads a record; undefined if the machine does not exist. */
export async function readRecord(path: string): Promise<MachineRecord | undefined> {
  const text = await readIfExists(path);
  return text === undefined ? undefined : (JSON.parse(text) as MachineRecord);
}

/** Resolves when the complete record is stored. */
export function writeRecord(path: string, record: MachineRecord): Promise<void> {
  return writeAtomically(path, `${JSON.stringify(record, undefined, 2)}\n`);
}
