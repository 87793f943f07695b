import type { BackupFacet } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import { untilNoClients } from "../../front/front-commands.ts";
import { frontsOf } from "../front.ts";
import { examine } from "./examine.ts";
import { createRestore } from "./restore.ts";
import { openSnapshot } from "./snapshot.ts";

/** Backups of Kafka: snapshots of topic data, each partition exact to an offset, without a log of later changes. */
export function createBackup(deps: EngineDeps): BackupFacet {
  return {
    kind: "snapshot",
    open: openSnapshot,
    async untilNoClients(instance, signal) {
      for (const front of frontsOf(instance)) await untilNoClients(front, signal);
    },
    restore: createRestore(deps),
    examine: (instance, _work, signal) => examine(deps, instance, signal),
  };
}
