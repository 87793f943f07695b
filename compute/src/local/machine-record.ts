import type { MachineSpec } from "../compute-provider.ts";
import { readIfThere, writeAtomically } from "./atomic-file.ts";

/** What a machine of this provider is; the file `machine.json`. A directory without it is a machine half made. */
export interface MachineRecord {
  readonly spec: MachineSpec;
  /** Its place among the machines of this directory: gives address and user. */
  readonly number: number;
  readonly address: string;
  /** Absent where it has none besides. */
  readonly publicAddress?: string;
  /** User and group of the engine, which give the agent's user as well; null without root. */
  readonly uid: number | null;
  readonly disk: "loop" | "directory";
  readonly diskBytes: number;
  /** Size that the file system has; less than diskBytes until it has grown. */
  readonly formattedBytes: number;
  /** Id of the node image that it starts from; empty for engines of the host, absent where nobody has chosen one yet. */
  readonly image?: string;
  /** The one before, and when it was replaced, milliseconds since 1970: its owner may want it back. */
  readonly previousImage?: { readonly id: string; readonly replacedAt: number };
  /** Id of the kernel that a virtual machine boots from; absent for containers, and where no start has pinned one yet. */
  readonly guestKernel?: string;
  /** The one before, as with images. */
  readonly previousGuestKernel?: { readonly id: string; readonly replacedAt: number };
  readonly starts: number;
  /** What the machine runs in is being made; if nobody is at it any more, it is made anew. Absent once it is there. */
  readonly unfinished?: true;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

/** Undefined when there is no such machine. */
export async function readRecord(path: string): Promise<MachineRecord | undefined> {
  const text = await readIfThere(path);
  return text === undefined ? undefined : (JSON.parse(text) as MachineRecord);
}

/** Resolves when it is there as a whole. */
export function writeRecord(path: string, record: MachineRecord): Promise<void> {
  return writeAtomically(path, `${JSON.stringify(record, undefined, 2)}\n`);
}
