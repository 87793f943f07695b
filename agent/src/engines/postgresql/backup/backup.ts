import type { BackupFacet } from "../../backup-facet.ts";
import { dataDirectory } from "../layout.ts";
import { saveArchiveState, readArchiveState } from "./archive-state.ts";
import { examine } from "./examine.ts";
import { branchEnd } from "./timelines.ts";
import { commit, distance, followLog, readSettings, retention } from "./log-stream.ts";
import type { RecoveryDeps } from "./private-server.ts";
import { createRestore } from "./restore.ts";
import { untilNoClients } from "../allow-list.ts";
import { baseStream, openBaseBackup } from "./base-backup.ts";

/**
 * Backup and restore of PostgreSQL.
 *
 * A backup is a base backup of pg_basebackup with the WAL that makes it consistent (base-backup.ts). The archive
 * follows the WAL over the replication protocol with a physical slot, across timelines (log-stream.ts). A restore
 * unpacks the base backup and recovers it in a private server (private-server.ts), whose restore_command is served with
 * segments out of the archive (log-staging.ts), up to a record that is determined from the log (stop-point.ts). A copy
 * is then detached from its source (detach-copy.ts).
 */
export function createBackup(deps: RecoveryDeps): BackupFacet {
  return {
    kind: "full",
    open: (instance, signal) => openBaseBackup(deps, instance, signal),
    untilNoClients,
    pages: { stream: baseStream, pageBytes: 8_192, root: dataDirectory },
    restore: createRestore(deps),
    examine: (instance, work, signal) => examine(deps, instance, work, signal),
    log: {
      follow: followLog,
      commit,
      settings: readSettings,
      retention,
      distance,
      saveArchiveState,
      readArchiveState,
      branchEnd,
    },
  };
}
