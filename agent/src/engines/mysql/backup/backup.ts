import type { BackupFacet } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import { untilNoClients } from "../../front/front-commands.ts";
import { frontOf } from "../front.ts";
import { createBinlog } from "./binlog-stream.ts";
import { openDump } from "./dump.ts";
import { examine } from "./examine.ts";
import { createRestore } from "./restore.ts";

/**
 * Backup and restore of MySQL.
 *
 * A backup is a dump of all users' databases as of one point in time (dump.ts): a stream of definitions, and streams of
 * rows as values of INSERT statements (row-text.ts), which several sessions read in chunks of tables. The log is the
 * binary log, read from its files (binlog-stream.ts). A restore creates new data and loads the dump in a private server
 * (restore.ts, load.ts), with the character sets and SQL modes of the source. To restore a later time, further servers
 * apply the log as relay logs (replay.ts, relay-files.ts). A copy starts a new history of transactions (GTIDs).
 */
export function createBackup(deps: EngineDeps): BackupFacet {
  return {
    kind: "snapshot",
    open: openDump,
    untilNoClients: (instance, signal) => untilNoClients(frontOf(instance), signal),
    restore: createRestore(deps),
    examine: (instance, work, signal) => examine(deps, instance, work, signal),
    log: createBinlog(),
  };
}
