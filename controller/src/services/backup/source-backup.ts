import { create } from "@bufbuild/protobuf";
import {
  type DataKey,
  DataKeySchema,
  type SourceBackup,
  SourceBackupSchema,
} from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { type BackupKeyObject, openDataKey } from "./backup-key.ts";
import type { BackupObject } from "./backup.ts";

/** A key of a backup, or of a log, as a machine gets it. */
export function dataKeyMessage(
  key: BackupKeyObject,
  sealed: { readonly id: string; readonly keyVersion: number; readonly wrappedKey: string },
  sealer: Sealer,
): DataKey {
  return create(DataKeySchema, { id: sealed.id, secret: openDataKey(key, sealed, sealer).toString("base64") });
}

/** A stored backup, as a machine that reads it hears of it. */
export function sourceBackup(
  { metadata: { id }, spec, status }: BackupObject,
  key: BackupKeyObject,
  sealer: Sealer,
): SourceBackup {
  const { attempt, manifestSha256 } = status;
  return create(SourceBackupSchema, {
    backupId: id,
    attempt,
    manifestSha256,
    key: dataKeyMessage(key, { id, ...spec }, sealer),
  });
}
