import { mkdir, open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { BackupFacet, RecoveryEnd, RestoreFacet } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../instance.ts";
import { examine } from "./examine.ts";
import { openSnapshot, snapshotStream } from "./snapshot.ts";
import { bootstrap } from "../bootstrap.ts";
import { appendDirectory, baseFile, secretFile } from "../layout.ts";
import { untilNoClients } from "../../front/front-commands.ts";
import { frontOf } from "../front.ts";
import { setEngineFileMode } from "../../../os/engine-file.ts";

/** Backups of Valkey: snapshots (RDB) without a log, so a restore has no other target than the end of the backup. */
export function createBackup(deps: EngineDeps): BackupFacet {
  return {
    kind: "snapshot",
    open: openSnapshot,
    untilNoClients: (instance, signal) => untilNoClients(frontOf(instance), signal),
    restore: createRestore(deps),
    examine: (instance, work, signal) => examine(deps, instance, work, signal),
  };
}

/**
 * Restores a snapshot as the base of the append-only file: an engine with that file loads no other. Users are created
 * from the settings, not from the backup.
 */
function createRestore(deps: EngineDeps): RestoreFacet {
  return {
    async unpack(instance, stream, bytes, signal) {
      if (stream !== snapshotStream) throw new Error(`a backup of Valkey has no ${stream}`);
      await bootstrap(deps, instance);
      // The agent, a member of the engine's group, signs in with this secret.
      await setEngineFileMode(secretFile(instance), 0o640);
      const directory = appendDirectory(instance);
      await mkdir(directory, { recursive: true, mode: 0o770 });
      const file = await open(join(directory, baseFile), "w", 0o640);
      try {
        for await (const chunk of bytes) {
          signal.throwIfAborted();
          await file.writeFile(chunk);
        }
        await file.sync();
      } finally {
        await file.close();
      }
    },
    finish: (instance, { target, report }, signal) => finish(deps, instance, target.kind, report, signal),
  };
}

async function finish(
  { run }: EngineDeps,
  instance: Instance,
  target: string,
  report: (progress: { step: "recovering"; position: string; reachedTime: undefined }) => void,
  signal: AbortSignal,
): Promise<RecoveryEnd> {
  if (target !== "backup_end") throw new Error("a snapshot can only be restored to the end of the backup");
  report({ step: "recovering", position: "", reachedTime: undefined });
  const directory = appendDirectory(instance);
  await run([`${instance.paths.software}/bin/valkey-check-rdb`, join(directory, baseFile)], { signal });
  const manifest = join(directory, "appendonly.aof.manifest");
  await writeFile(manifest, `file ${baseFile} seq 1 type b\n`, { mode: 0o640, flush: true });
  await syncPath(directory);
  return { position: "", reachedTime: undefined, lockedUsers: [] };
}
