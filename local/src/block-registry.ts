import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readJson } from "./files.ts";

/** What one data directory has for itself on this host: loopback addresses, and the ports that go with them. */
export interface Claim {
  readonly directory: string;
  /** First two octets of its machines' addresses, such as `127.77`. */
  readonly block: string;
}

/** Claims of all installations of the host, a file each, named after the block. */
export interface BlockRegistry {
  /** Claims the first block that is free and that `accept` takes, for good. */
  claim(directory: string, accept: (block: string) => Promise<boolean>): Promise<string>;
  /** Renews a claim; false when another living directory has the block. */
  keep(claim: Claim): boolean;
  release(block: string): void;
}

interface StoredClaim extends Claim {
  readonly claimedAt: number;
}

/** Blocks 127.77 to 127.254. */
export const [firstOctet, lastOctet] = [77, 254];

/** A claim this young counts even if its directory does not say so yet: its first start is under way. */
const settlingMs = 60_000;

export function createBlockRegistry(registryDir: string, now: () => number): BlockRegistry {
  mkdirSync(registryDir, { recursive: true });
  share(registryDir);
  return { claim, keep, release };

  async function claim(directory: string, accept: (block: string) => Promise<boolean>): Promise<string> {
    for (let octet = firstOctet; octet <= lastOctet; octet += 1) {
      const block = `127.${octet}`;
      if (!keep({ directory, block })) continue;
      if (await accept(block)) return block;
      release(block);
    }
    throw new Error(`all loopback blocks are claimed; see ${registryDir}`);
  }

  function keep(wanted: Claim): boolean {
    const file = join(registryDir, `${wanted.block}.json`);
    for (;;) {
      try {
        // One process makes the file, whoever else tries at the same time.
        writeFileSync(file, JSON.stringify({ ...wanted, claimedAt: now() }), { flag: "wx" });
        return true;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
      const holder = readJson<StoredClaim>(file);
      if (holder?.directory === wanted.directory) return true;
      if (holder !== undefined && isLiving(holder)) return false;
      if (!removed(file)) return false;
    }
  }

  function release(block: string): void {
    rmSync(join(registryDir, `${block}.json`), { force: true });
  }

  function isLiving(holder: StoredClaim): boolean {
    if (now() - holder.claimedAt < settlingMs) return true;
    try {
      const installation = readJson<{ loopback_block: string }>(join(holder.directory, "installation.json"));
      return installation?.loopback_block === holder.block;
    } catch {
      // Not ours to read: it belongs to another user, who may well be using it.
      return true;
    }
  }
}

/** The directory is sticky: a dead claim of another user stays until that user removes it. */
function removed(file: string): boolean {
  try {
    rmSync(file, { force: true });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EPERM") return false;
    throw error;
  }
}

/** Users of the host share the registry, as they share its loopback network. */
function share(directory: string): void {
  try {
    chmodSync(directory, 0o1777);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") throw error;
  }
}
