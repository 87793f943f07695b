import type { Log } from "@holdfast/common/log.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { LogRange } from "#services/backup/archive/archive.ts";
import { chainOf } from "#services/backup/backup-chain.ts";
import { checkBackup } from "#services/backup/backup-check.ts";
import type { BackupKeyObject } from "#services/backup/backup-key.ts";
import type { BackupObject } from "#services/backup/backup.ts";
import { logAfter } from "#services/backup/restore/restorable.ts";
import type { ServiceDescriptor } from "#services/backup/objects/service-descriptor.ts";

/** The backup from which a service is recovered. */
export interface NewestBase {
  readonly backup: BackupObject;
  /** True if the archive has log after the backup. */
  readonly hasLog: boolean;
  /** Time up to which at least the recovered data are complete, in RFC 3339. */
  readonly to: string;
}

/**
 * The newest backup that can be decrypted: the first and last bytes of it and of all backups that it depends on are
 * tested. Undefined if there is none.
 */
export async function newestBase(
  { backups }: ServiceDescriptor,
  key: BackupKeyObject,
  ranges: readonly LogRange[],
  { objects, sealer, log }: { readonly objects: ObjectStore; readonly sealer: Sealer; readonly log: Log },
): Promise<NewestBase | undefined> {
  for (const backup of backups.toReversed()) {
    try {
      const chain = chainOf(backup, (id) => backups.find(({ metadata }) => metadata.id === id));
      if (chain === undefined) throw new Error("a backup that this increment depends on is missing");
      for (let length = 1; length <= chain.length; length += 1)
        await checkBackup(chain.slice(0, length), key, "sample", { objects, sealer });
    } catch (error) {
      log.warn("backup cannot be opened", { backup: backup.metadata.id, error: String(error) });
      continue;
    }
    const end = logAfter(backup, ranges)?.at(-1)?.toTime;
    const to = new Date(end ?? backup.status.restoresTo ?? 0).toISOString();
    return { backup, hasLog: end !== undefined, to };
  }
  return undefined;
}
