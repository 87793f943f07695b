import { existsSync, readdirSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ComputeFailure } from "../compute-failure.ts";
import type { Admission } from "../compute-provider.ts";
import { claimFile, namesIn, readIfExists } from "./atomic-file.ts";
import { type AddressNetwork, addressNetworkOf, hostAddressesOf, overlap } from "./address-network.ts";

/**
 * Public addresses of a host's machines. A claimed address is a file named after it, with its owner's name, created by
 * link(2) like a machine number: several controllers never assign it twice, and a claim survives a change of the block.
 */
export interface PublicAddresses {
  /**
   * The owner's address, claimed now if it has none; undefined if the host has no block. Throws ComputeFailure when
   * none is free. `scratch` is a directory that is removed with the owner.
   */
  claim(owner: string, scratch: string): Promise<string | undefined>;
  /** Frees the owner's address. */
  release(owner: string): Promise<void>;
  /** The block, and each address of an earlier block that was claimed when this was opened. */
  readonly networks: readonly string[];
  /** Tests whether this machine can have an address; admitted if there is no block. */
  admit(spec: { readonly id: string; readonly ahead?: boolean }): Promise<Admission>;
  facts(): Promise<PublicAddressFacts>;
}

/** Number of public addresses of a host. */
export interface PublicAddressFacts {
  /** Network such as `203.0.113.16/28`; empty if machines have their private address only. */
  readonly publicBlock: string;
  readonly publicTotal: number;
  readonly publicFree: number;
}

/** A fourth of the addresses is not available to machines of the warm pool. */
const reservedDivisor = 4;

/** Public addresses of `block`, none if undefined. The directory with the claims is created on demand. */
export function createPublicAddresses(directory: string, block: AddressNetwork | undefined): PublicAddresses {
  const all = block === undefined ? [] : hostAddressesOf(block);
  const name = block?.text ?? "";
  const taken = () => namesIn(directory);
  const earlier = (existsSync(directory) ? readdirSync(directory) : [])
    .map((address) => `${address}/32`)
    .filter((network) => block === undefined || !overlap(block, addressNetworkOf(network)));

  async function of(owner: string): Promise<string[]> {
    const names = await taken();
    const owners = await Promise.all(names.map((address) => readIfExists(join(directory, address))));
    return names.filter((_, index) => owners[index] === owner);
  }

  async function free(): Promise<number> {
    const takenAddresses = new Set(await taken());
    return all.filter((address) => !takenAddresses.has(address)).length;
  }

  const noneFree = `The host has no free public address for a machine: all ${all.length} of ${name} are taken.`;

  return {
    networks: block === undefined ? earlier : [name, ...earlier],
    async claim(owner, scratch) {
      const [own] = await of(owner);
      if (own !== undefined || block === undefined) return own;
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const takenAddresses = new Set(await taken());
      for (const address of all)
        if (!takenAddresses.has(address) && (await claimFile(join(directory, address), owner, scratch))) return address;
      throw new ComputeFailure(noneFree);
    },
    async release(owner) {
      for (const address of await of(owner)) await rm(join(directory, address), { force: true });
    },
    async admit({ id, ahead = false }) {
      if (block === undefined || (await of(id)).length > 0) return { admitted: true };
      const freeCount = await free();
      if (freeCount === 0) return { admitted: false, reason: noneFree };
      if (!ahead || freeCount > all.length / reservedDivisor) return { admitted: true };
      return {
        admitted: false,
        reason: `The host has ${freeCount} free public addresses, which requested machines may need.`,
      };
    },
    facts: async () => ({ publicBlock: name, publicTotal: all.length, publicFree: await free() }),
  };
}
