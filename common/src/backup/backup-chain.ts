import { BackupDamaged, type BackupReader, type BackupReaderDeps, openBackup } from "./backup-reader.ts";

/**
 * Opens a chain of backups, the full backup first. Throws BackupDamaged unless each is an increment of exactly the
 * preceding one and the first has no base.
 */
export async function openChain(chain: readonly BackupReaderDeps[]): Promise<readonly BackupReader[]> {
  const readers: BackupReader[] = [];
  for (const deps of chain) {
    const reader = await openBackup(deps);
    requireNext(readers.at(-1), reader);
    readers.push(reader);
  }
  if (readers.length === 0) throw new Error("a chain has at least one backup");
  return readers;
}

function requireNext(before: BackupReader | undefined, { manifest }: BackupReader): void {
  const { backup, base } = manifest;
  if (before === undefined) {
    if (base !== undefined) throw new BackupDamaged(`${backup} is based on ${base.backup}, which is missing`);
    return;
  }
  const { attempt } = before.manifest;
  const isNext =
    base?.backup === before.manifest.backup &&
    base.attempt === attempt &&
    base.manifestSha256 === before.manifestSha256 &&
    manifest.engine === before.manifest.engine;
  if (!isNext) throw new BackupDamaged(`${backup} is not based on the stored ${before.manifest.backup}`);
}
