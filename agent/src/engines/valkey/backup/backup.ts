import type { BackupFacet } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import { examine } from "./examine.ts";
import { createRestore } from "./restore.ts";
import { untilNoClients } from "../listener.ts";
import { openSnapshot } from "./snapshot.ts";

/** Snapshots, without a log. */
export function createBackup(deps: EngineDeps): BackupFacet {
  return {
    kind: "snapshot",
    open: openSnapshot,
    untilNoClients,
    restore: createRestore(deps),
    examine: (instance, work, signal) => examine(deps, instance, work, signal),
  };
}
