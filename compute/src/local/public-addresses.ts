import { existsSync, readdirSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { ComputeFailure } from "../compute-failure.ts";
import type { Admission } from "../compute-provider.ts";
import { claimFile, namesIn, readIfThere } from "./atomic-file.ts";
import { type AddressNetwork, addressNetworkOf, hostAddressesOf, overlap } from "./address-network.ts";

/**
 * The public addresses of a host's machines. Each that is taken is a file named after it, with its owner's name in it,
 * claimed by link(2) as numbers of machines are: several controllers never give one out twice, and one that was claimed
 * before the block changed stays its owner's.
 */
export interface PublicAddresses {
  /**
   * The owner's address, claimed now if it has none; undefined where the host has no block. Throws ComputeFailure when none is
   * left. `scratch` is a directory that goes with the owner.
   */
  claim(owner: string, scratch: string): Promise<string | undefined>;
  /** Frees what the owner has. */
  release(owner: string): Promise<void>;
  /** The block, and each address of an earlier one that somebody had when this was made. */
  readonly networks: readonly string[];
  /** Could this machine have one? Yes where there is no block. */
  admit(spec: { readonly id: string; readonly ahead?: boolean }): Promise<Admission>;
  facts(): Promise<PublicAddressFacts>;
}

/** How many public addresses a host has. */
export interface PublicAddressFacts {
  /** Such as `203.0.113.16/28`; empty where machines have their private address alone. */
  readonly publicBlock: string;
  readonly publicTotal: number;
  readonly publicFree: number;
}

/** One of so many of all stays free of machines that nobody wants yet. */
const keptShare = 4;

/** Public addresses out of `block`, none when undefined; what is taken is in the directory, which is made when it is needed. */
export function createPublicAddresses(directory: string, block: AddressNetwork | undefined): PublicAddresses {
  const all = block === undefined ? [] : hostAddressesOf(block);
  const name = block?.text ?? "";
  const taken = () => namesIn(directory);
  const earlier = (existsSync(directory) ? readdirSync(directory) : [])
    .map((address) => `${address}/32`)
    .filter((network) => block === undefined || !overlap(block, addressNetworkOf(network)));

  async function of(owner: string): Promise<string[]> {
    const names = await taken();
    const owners = await Promise.all(names.map((address) => readIfThere(join(directory, address))));
    return names.filter((_, index) => owners[index] === owner);
  }

  async function free(): Promise<number> {
    const gone = new Set(await taken());
    return all.filter((address) => !gone.has(address)).length;
  }

  const noneLeft = `The host has no public address left for a machine: all ${all.length} of ${name} are taken.`;

  return {
    networks: block === undefined ? earlier : [name, ...earlier],
    async claim(owner, scratch) {
      const [own] = await of(owner);
      if (own !== undefined || block === undefined) return own;
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const gone = new Set(await taken());
      for (const address of all)
        if (!gone.has(address) && (await claimFile(join(directory, address), owner, scratch))) return address;
      throw new ComputeFailure(noneLeft);
    },
    async release(owner) {
      for (const address of await of(owner)) await rm(join(directory, address), { force: true });
    },
    async admit({ id, ahead = false }) {
      if (block === undefined || (await of(id)).length > 0) return { admitted: true };
      const left = await free();
      if (left === 0) return { admitted: false, reason: noneLeft };
      if (!ahead || left > all.length / keptShare) return { admitted: true };
      return { admitted: false, reason: `The host has ${left} public addresses left for those that are wanted.` };
    },
    facts: async () => ({ publicBlock: name, publicTotal: all.length, publicFree: await free() }),
  };
}
