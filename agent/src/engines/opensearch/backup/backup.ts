import type { BackupFacet } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import { untilNoClients } from "../../front/front-commands.ts";
import { frontOf } from "../front.ts";
import { examine } from "./examine.ts";
import { createRestore } from "./restore.ts";
import { openSnapshot } from "./snapshot.ts";

/** Backups of OpenSearch: snapshots by its own API, without a log of later changes. */
export function createBackup(deps: EngineDeps): BackupFacet {
  return {
    kind: "snapshot",
    open: (instance, signal) => openSnapshot(deps, instance, signal),
    untilNoClients: (instance, signal) => untilNoClients(frontOf(instance), signal),
    restore: createRestore(deps),
    examine: (instance, _work, signal) => examine(deps, instance, signal),
  };
}
