import { BackupDamaged, type BackupReader, type BackupReaderDeps, openBackup } from "./backup-reader.ts";

/**
 * Opens a backup with all that it goes on from, the full one first. Throws BackupDamaged unless each is an increment since the very
 * one before it, down to one that needs nothing.
 */
export async function openChain(chain: readonly BackupReaderDeps[]): Promise<readonly BackupReader[]> {
  const readers: BackupReader[] = [];
  for (const deps of chain) {
    const reader = await openBackup(deps);
    requireNext(readers.at(-1), reader);
    readers.push(reader);
  }
  if (readers.length === 0) throw new Error("a chain has a backup at least");
  return readers;
}

function requireNext(before: BackupReader | undefined, { manifest }: BackupReader): void {
  const { backup, base } = manifest;
  if (before === undefined) {
    if (base !== undefined) throw new BackupDamaged(`${backup} goes on from ${base.backup}, which is not there`);
    return;
  }
  const { attempt } = before.manifest;
  const isNext =
    base?.backup === before.manifest.backup &&
    base.attempt === attempt &&
    base.manifestSha256 === before.manifestSha256 &&
    manifest.engine === before.manifest.engine;
  if (!isNext) throw new BackupDamaged(`${backup} does not go on from ${before.manifest.backup} as it is stored`);
}
