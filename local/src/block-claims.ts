import { randomUUID } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import { readJson, replaceFileSync } from "./files.ts";

/** Claim of a data directory on a block of loopback addresses, and on the ports that belong to it. */
export interface Claim {
  readonly directory: string;
  /** First two octets of its machines' addresses, such as `127.77`. */
  readonly block: string;
}

/** Claims of all installations of the host, a file each. */
export interface BlockClaims {
  /** Claims the first free block that `accept` admits, permanently. */
  claim(directory: string, accept: (block: string) => Promise<boolean>): Promise<string>;
  /** Renews a claim; false if another existing directory has the block. */
  renew(claim: Claim): boolean;
  release(claim: Claim): void;
  /** Blocks that a directory has claimed; it may not exist any more. */
  blocksOf(directory: string): string[];
  /** All directories with a claim, of which some may not exist any more. */
  directories(): string[];
  /** True if another directory has an active claim on the block. */
  isOfOther(claim: Claim): boolean;
}

interface StoredClaim extends Claim {
  readonly claimedAt: number;
}

/** Blocks 127.77 to 127.254. */
export const [firstOctet, lastOctet] = [77, 254];

/** Time for which a new claim counts without its directory, which the first start then creates. */
const firstStartTimeoutMs = 60_000;

export function createBlockClaims(registryDir: string, now: () => number): BlockClaims {
  mkdirSync(registryDir, { recursive: true });
  makeShared(registryDir);
  return { claim, renew, release, blocksOf, directories, isOfOther };

  async function claim(directory: string, accept: (block: string) => Promise<boolean>): Promise<string> {
    for (let octet = firstOctet; octet <= lastOctet; octet += 1) {
      const block = `127.${octet}`;
      if (!renew({ directory, block })) continue;
      if (await accept(block)) return block;
      release({ directory, block });
    }
    throw new Error(`all loopback blocks are claimed; see ${registryDir}`);
  }

  /**
   * Writes a claim, which counts if no other active claim exists afterwards. Two concurrent claims may both be removed,
   * but never both remain. Each file has a unique name, so the removal of a stale claim never removes a new one.
   */
  function renew({ directory, block }: Claim): boolean {
    const before = claimsOn(block);
    if (before.some(({ owner }) => owner.directory === directory)) return true;
    if (before.some(({ owner }) => isActive(owner))) return false;
    for (const { file } of before) remove(file);
    const ownFile = join(registryDir, `${block}.${randomUUID()}.json`);
    replaceFileSync(ownFile, JSON.stringify({ directory, block, claimedAt: now() }), 0o644);
    const isAlone = claimsOn(block).every(({ file, owner }) => file === ownFile || !isActive(owner));
    if (!isAlone) remove(ownFile);
    return isAlone;
  }

  function release({ directory, block }: Claim): void {
    for (const { file, owner } of claimsOn(block)) if (owner.directory === directory) remove(file);
  }

  function blocksOf(directory: string): string[] {
    const claims = claimsOn("127").filter(({ owner }) => owner.directory === directory);
    return [...new Set(claims.map(({ owner }) => owner.block))];
  }

  function directories(): string[] {
    return [...new Set(claimsOn("127").map(({ owner }) => owner.directory))];
  }

  function isOfOther({ directory, block }: Claim): boolean {
    return claimsOn(block).some(({ owner }) => owner.directory !== directory && isActive(owner));
  }

  /** Claims on a block, or on all blocks with this prefix. */
  function claimsOn(block: string): { readonly file: string; readonly owner: StoredClaim }[] {
    const names = readdirSync(registryDir).filter((name) => name.startsWith(`${block}.`) && name.endsWith(".json"));
    return names.flatMap((name) => {
      const file = join(registryDir, name);
      const owner = readJson<StoredClaim>(file);
      return owner === undefined ? [] : [{ file, owner }];
    });
  }

  function isActive(owner: StoredClaim): boolean {
    if (now() - owner.claimedAt < firstStartTimeoutMs) return true;
    try {
      const installation = readJson<{ loopback_block: string }>(join(owner.directory, "installation.json"));
      return installation?.loopback_block === owner.block;
    } catch {
      // Owned by another user, who may be using it.
      return true;
    }
  }
}

/** Removes a claim. The directory is sticky: a stale claim of another user remains, and does not count. */
function remove(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch (error) {
    if (!hasCode(error, "EPERM")) throw error;
  }
}

/** Makes the directory writable for all users of the host, because they share its loopback network. */
function makeShared(directory: string): void {
  try {
    chmodSync(directory, 0o1777);
  } catch (error) {
    if (!hasCode(error, "EPERM")) throw error;
  }
}
