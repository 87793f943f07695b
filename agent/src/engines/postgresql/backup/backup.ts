import type { BackupFacet } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import { dataDirectory } from "../layout.ts";
import { note, noted } from "./archive-note.ts";
import { examine } from "./examine.ts";
import { branchEnd } from "./lineage.ts";
import { commit, distance, followLog, kept, settings } from "./log-stream.ts";
import { createRestore } from "./restore.ts";
import { untilNoClients } from "../allow-list.ts";
import { baseStream, openBase } from "./source.ts";

/** Base backups by the replication protocol; recovery in an engine of our own before the real one starts. */
export function createBackup(deps: EngineDeps): BackupFacet {
  return {
    kind: "full",
    open: (instance, signal) => openBase(deps, instance, signal),
    untilNoClients,
    pages: { stream: baseStream, pageBytes: 8_192, root: dataDirectory },
    restore: createRestore(deps),
    examine: (instance, work, signal) => examine(deps, instance, work, signal),
    log: { follow: followLog, commit, settings, kept, distance, note, noted, branchEnd },
  };
}
