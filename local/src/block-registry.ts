import { randomUUID } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import { readJson, writeAtomically } from "./files.ts";

/** What one data directory has for itself on this host: loopback addresses, and the ports that go with them. */
export interface Claim {
  readonly directory: string;
  /** First two octets of its machines' addresses, such as `127.77`. */
  readonly block: string;
}

/** Claims of all installations of the host, a file each. */
export interface BlockRegistry {
  /** Claims the first block that is free and that `accept` takes, for good. */
  claim(directory: string, accept: (block: string) => Promise<boolean>): Promise<string>;
  /** Renews a claim; false when another living directory has the block. */
  keep(claim: Claim): boolean;
  release(claim: Claim): void;
  /** Blocks that a directory has claimed, also one that is gone by now. */
  blocksOf(directory: string): string[];
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
  return { claim, keep, release, blocksOf };

  async function claim(directory: string, accept: (block: string) => Promise<boolean>): Promise<string> {
    for (let octet = firstOctet; octet <= lastOctet; octet += 1) {
      const block = `127.${octet}`;
      if (!keep({ directory, block })) continue;
      if (await accept(block)) return block;
      release({ directory, block });
    }
    throw new Error(`all loopback blocks are claimed; see ${registryDir}`);
  }

  /**
   * A claim counts when no other living one is there after it was made. Of two made at the same time both may give way, and
   * never do both stay. Each has a name that nobody uses again, so to remove a dead one cannot meet a fresh one.
   */
  function keep({ directory, block }: Claim): boolean {
    const before = claimsOn(block);
    if (before.some(({ holder }) => holder.directory === directory)) return true;
    if (before.some(({ holder }) => isLiving(holder))) return false;
    for (const { file } of before) remove(file);
    const own = join(registryDir, `${block}.${randomUUID()}.json`);
    writeAtomically(own, JSON.stringify({ directory, block, claimedAt: now() }), 0o644);
    const isAlone = claimsOn(block).every(({ file, holder }) => file === own || !isLiving(holder));
    if (!isAlone) remove(own);
    return isAlone;
  }

  function release({ directory, block }: Claim): void {
    for (const { file, holder } of claimsOn(block)) if (holder.directory === directory) remove(file);
  }

  function blocksOf(directory: string): string[] {
    const own = claimsOn("127").filter(({ holder }) => holder.directory === directory);
    return [...new Set(own.map(({ holder }) => holder.block))];
  }

  /** Claims on a block, or on all that begin so. */
  function claimsOn(block: string): { readonly file: string; readonly holder: StoredClaim }[] {
    const names = readdirSync(registryDir).filter((name) => name.startsWith(`${block}.`) && name.endsWith(".json"));
    return names.flatMap((name) => {
      const file = join(registryDir, name);
      const holder = readJson<StoredClaim>(file);
      return holder === undefined ? [] : [{ file, holder }];
    });
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

/** The directory is sticky: a dead claim of another user stays, and counts for nothing, until that user removes it. */
function remove(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch (error) {
    if (!hasCode(error, "EPERM")) throw error;
  }
}

/** Users of the host share the registry, as they share its loopback network. */
function share(directory: string): void {
  try {
    chmodSync(directory, 0o1777);
  } catch (error) {
    if (!hasCode(error, "EPERM")) throw error;
  }
}
