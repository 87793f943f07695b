import { keeperProtocol } from "@holdfast/common/keeper-protocol.ts";
import { knownImageIds } from "@holdfast/image/image-manifest.ts";
import { memoryOf, spaceOf } from "./free-space.ts";
import { fileSystemOf } from "./mount-info.ts";
import { bootId } from "./process-identity.ts";
import type { PublicAddresses, PublicAddressFacts } from "./public-addresses.ts";
import type { StorageTiers } from "./storage-tiers.ts";

/** What a host of machines is and has now. */
export interface HostFacts extends PublicAddressFacts {
  /** Name of its provider: `process` or `incus`. */
  readonly provider: string;
  readonly memoryTotalBytes: number;
  /** What programs could take. */
  readonly memoryFreeBytes: number;
  /** Of the file system that has the machines' data. */
  readonly diskTotalBytes: number;
  readonly diskFreeBytes: number;
  /** Kinds of disk to choose from. */
  readonly tiers: readonly StorageTier[];
  /** Of the program that speaks for the host. */
  readonly version: string;
  /** Of the kernel: another one after a reboot. */
  readonly bootId: string;
  /** First two numbers of the machines' private addresses, such as `127.77`. */
  readonly addressBlock: string;
  /** Ids of the node images that it has or can make again. */
  readonly imageIds: readonly string[];
  /** Why it cannot run virtual machines, for users; empty where it can. Absent from notes of earlier versions. */
  readonly noVirtualMachines?: string;
  /** Protocol of the keeper that a machine gets at its next start here. Absent where an earlier version told. */
  readonly keeperProtocol?: number;
}

export interface StorageTier {
  readonly name: string;
  readonly totalBytes: number;
  readonly freeBytes: number;
  /** Tells whether two tiers of the host share their space; absent where an earlier version told. */
  readonly fileSystem?: string;
  /** Why data disks of this tier can have no snapshots; empty when they can, absent where an earlier version told. */
  readonly noSnapshots?: string;
  /** Where its machines have their roots; absent where they have none of their own, and where an earlier version told. */
  readonly roots?: RootStorage;
}

/** A storage pool for roots. */
export interface RootStorage {
  readonly totalBytes: number;
  readonly freeBytes: number;
  /** What a new root takes at once. */
  readonly firstBytes: number;
  /** As of tiers: what has the same shares its space. */
  readonly fileSystem: string;
  /** Why no root can be made there now, for users; empty where one can. */
  readonly problem: string;
}

export interface HostFactsDeps {
  /** Name of the provider. */
  readonly provider: string;
  /** On the file system that has the machines' data. */
  readonly directory: string;
  readonly tiers: StorageTiers;
  readonly addressBlock: string;
  /** Where its node images are. */
  readonly imagesDir: string;
  readonly publicAddresses: Pick<PublicAddresses, "facts">;
  readonly version: string;
  /** Why disks of a tier can have no snapshots; empty when they can. */
  readonly noSnapshots: (tier: string) => Promise<string>;
  readonly noVirtualMachines: string;
  /** Where machines of a tier have their roots; undefined where they have none of their own. */
  readonly rootsOf: (tier: string) => Promise<RootStorage | undefined>;
}

/** Facts of the host that this runs on. */
export async function readHostFacts(deps: HostFactsDeps): Promise<HostFacts> {
  const { provider, directory, tiers, addressBlock, publicAddresses, imagesDir, version } = deps;
  const { noSnapshots, noVirtualMachines, rootsOf } = deps;
  const [memory, space, addresses, imageIds] = await Promise.all([
    memoryOf(),
    spaceOf(directory, 0),
    publicAddresses.facts(),
    knownImageIds(imagesDir),
  ]);
  return {
    provider,
    memoryTotalBytes: memory.totalBytes,
    memoryFreeBytes: memory.availableBytes,
    diskTotalBytes: space.totalBytes,
    diskFreeBytes: space.freeBytes,
    tiers: await Promise.all(
      tiers.names.map(async (name) => {
        const place = tiers.directoryOf(name) ?? directory;
        const [{ totalBytes, freeBytes }, fileSystem, roots] = await Promise.all([
          spaceOf(place, 0),
          fileSystemOf(place),
          rootsOf(name),
        ]);
        const tier = { name, totalBytes, freeBytes, fileSystem, noSnapshots: await noSnapshots(name) };
        return roots === undefined ? tier : { ...tier, roots };
      }),
    ),
    version,
    bootId: bootId(),
    addressBlock,
    imageIds,
    ...addresses,
    noVirtualMachines,
    keeperProtocol,
  };
}
