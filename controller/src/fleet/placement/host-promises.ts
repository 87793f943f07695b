import { inGib } from "@holdfast/compute/local/free-space.ts";
import type { MachineObject, MachineSpecObject } from "../machine/machine.ts";
import type { HostObject } from "../host/host.ts";
import { type StorageShare, storageShares, type StorageWanted } from "./storage-shares.ts";

/** What a machine takes of its host, and whose it is. */
export interface WantedRoom extends StorageWanted, Pick<MachineSpecObject, "owner" | "memoryBytes"> {
  /** Its own promise, if it has one already, does not count against it. */
  readonly id: string;
}

/** What other machines were promised of a host. */
export interface Promises {
  readonly memoryBytes: number;
  /** Of the storages that it would be on. */
  readonly storages: readonly StorageShare[];
  /** Placed, and not yet written to. */
  readonly unmade: number;
  /** Members of the same service. */
  readonly peers: number;
}

/**
 * Pure: what the host's machines were promised besides this one. Machines that wait for an owner make room for a
 * machine that has one.
 */
export function promisesOn(host: HostObject, wanted: WantedRoom, machines: Iterable<MachineObject>): Promises {
  const counts = ({ metadata, spec }: MachineObject) =>
    spec.hostId === host.metadata.id && metadata.id !== wanted.id && (spec.owner !== null || wanted.owner === null);
  const others = Iterator.from(machines).filter(counts).toArray();
  const specs = others.map(({ spec }) => spec);
  return {
    memoryBytes: specs.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0),
    storages: storageShares(host, wanted, specs),
    unmade: others.filter(({ status }) => status.address === "").length,
    peers: specs.filter((spec) => isPeer(spec, wanted)).length,
  };
}

/** Pure: why its memory was promised away, with the figures; undefined when there is enough. */
export function memoryRefusal(
  { memoryBytes }: WantedRoom,
  { spec, status }: HostObject,
  promises: Promises,
): string | undefined {
  const total = status.facts?.memoryTotalBytes ?? 0;
  const factor = spec.memoryOvercommit;
  if (factor === null || promises.memoryBytes + memoryBytes <= total * factor) return undefined;
  return `${inGib(memoryBytes)} GiB of memory were asked for, and ${inGib(promises.memoryBytes)} GiB of ${inGib(total)} GiB times ${factor} are promised.`;
}

/** Is it another member of the same service? */
export function isPeer({ owner }: Pick<MachineSpecObject, "owner">, wanted: Pick<WantedRoom, "owner">): boolean {
  return owner !== null && owner.kind === wanted.owner?.kind && owner.id === wanted.owner.id;
}
