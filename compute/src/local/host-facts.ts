import { keeperProtocol } from "@holdfast/common/keeper-protocol.ts";
import { imageIdsIn } from "@holdfast/image/image-manifest.ts";
import { memoryOf, spaceOf } from "./free-space.ts";
import { fileSystemOf } from "./mount-info.ts";
import { bootId } from "./process-identity.ts";
import type { PublicAddresses, PublicAddressFacts } from "./public-addresses.ts";
import type { StorageTiers } from "./storage-tiers.ts";

/**
 * Facts of a host: its capacity, storage and software. Stored with the host's object, so fields that later releases
 * added are optional.
 */
export interface HostFacts extends PublicAddressFacts {
  /** Provider name: `process` or `incus`. */
  readonly provider: string;
  readonly memoryTotalBytes: number;
  /** Memory available to programs. */
  readonly memoryFreeBytes: number;
  /** Size of the file system with the machines' data. */
  readonly diskTotalBytes: number;
  readonly diskFreeBytes: number;
  /** Storage tiers of the host. */
  readonly tiers: readonly StorageTier[];
  /** Version of the program that reports for the host. */
  readonly version: string;
  /** Boot id of the kernel; changes with each reboot. */
  readonly bootId: string;
  /** First two octets of the machines' private addresses, such as `127.77`. */
  readonly addressBlock: string;
  /** Ids of the node images that the host has or can build again. */
  readonly imageIds: readonly string[];
  /**
   * Reason why the host cannot run virtual machines, for users; empty if it can. Absent in facts of earlier versions.
   */
  readonly virtualMachineProblem?: string;
  /** True if machines can listen on ports below 1024. Absent in facts of earlier versions. */
  readonly lowPorts?: boolean;
  /** Protocol version of the keeper that a machine gets at its next start. Absent in facts of earlier versions. */
  readonly keeperProtocol?: number;
  /**
   * host:port of the listeners of the host's program. Absent for a host of the controllers, which has no such program,
   * and in facts of earlier releases.
   */
  readonly listeners?: readonly string[];
}

export interface StorageTier {
  readonly name: string;
  readonly totalBytes: number;
  readonly freeBytes: number;
  /** Id of the file system: equal for tiers that share their space. Absent in facts of earlier versions. */
  readonly fileSystem?: string;
  /**
   * Reason why data disks of this tier cannot have snapshots; empty if they can, absent in facts of earlier versions.
   */
  readonly snapshotProblem?: string;
  /**
   * Storage of the machines' roots; absent if roots have no storage, and in facts of earlier releases.
   */
  readonly roots?: RootStorage;
}

/** A storage pool for roots. */
export interface RootStorage {
  readonly totalBytes: number;
  readonly freeBytes: number;
  /** Bytes that a new root takes at first. */
  readonly firstBytes: number;
  /** Id of the file system, as for tiers: equal ids share their space. */
  readonly fileSystem: string;
  /** Reason why no root can be created now, for users; empty if one can. */
  readonly problem: string;
}

export interface HostFactsDeps {
  /** Provider name. */
  readonly provider: string;
  /** A directory on the file system with the machines' data. */
  readonly directory: string;
  readonly tiers: StorageTiers;
  readonly addressBlock: string;
  /** Directory of the node images. */
  readonly imagesDir: string;
  readonly publicAddresses: Pick<PublicAddresses, "facts">;
  readonly version: string;
  /** Reason why disks of a tier cannot have snapshots; empty if they can. */
  readonly snapshotProblem: (tier: string) => Promise<string>;
  readonly virtualMachineProblem: string;
  /** True if machines can listen on ports below 1024. */
  readonly lowPorts: boolean;
  /** Storage of the roots of a tier's machines; undefined if roots have no storage. */
  readonly rootStorageOf: (tier: string) => Promise<RootStorage | undefined>;
}

/** Reads the facts of this host. */
export async function readHostFacts(deps: HostFactsDeps): Promise<HostFacts> {
  const { provider, directory, tiers, addressBlock, publicAddresses, imagesDir, version } = deps;
  const { snapshotProblem, virtualMachineProblem, lowPorts, rootStorageOf } = deps;
  const [memory, space, addresses, imageIds] = await Promise.all([
    memoryOf(),
    spaceOf(directory, 0),
    publicAddresses.facts(),
    imageIdsIn(imagesDir),
  ]);
  return {
    provider,
    memoryTotalBytes: memory.totalBytes,
    memoryFreeBytes: memory.availableBytes,
    diskTotalBytes: space.totalBytes,
    diskFreeBytes: space.freeBytes,
    tiers: await Promise.all(
      tiers.names.map(async (name) => {
        const tierDirectory = tiers.directoryOf(name) ?? directory;
        const [{ totalBytes, freeBytes }, fileSystem, roots] = await Promise.all([
          spaceOf(tierDirectory, 0),
          fileSystemOf(tierDirectory),
          rootStorageOf(name),
        ]);
        const tier = { name, totalBytes, freeBytes, fileSystem, snapshotProblem: await snapshotProblem(name) };
        return roots === undefined ? tier : { ...tier, roots };
      }),
    ),
    version,
    bootId: bootId(),
    addressBlock,
    imageIds,
    ...addresses,
    virtualMachineProblem,
    lowPorts,
    keeperProtocol,
  };
}
