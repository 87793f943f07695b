import { mkdir, open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { RecoveryEnd, RestoreFacet } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../instance.ts";
import { setEngineFileMode } from "../../../os/engine-file.ts";
import { bootstrap } from "../bootstrap.ts";
import { dataDirectory, secretFile } from "../layout.ts";
import { snapshotStream } from "./snapshot.ts";

export const baseFile = "appendonly.aof.1.base.rdb";

/** With its append-only file on, the engine reads nothing but that: a snapshot is brought in as its base. Users are the settings' alone. */
export function createRestore(deps: EngineDeps): RestoreFacet {
  return {
    async place(instance, stream, bytes, signal) {
      if (stream !== snapshotStream) throw new Error(`a backup of Valkey has no ${stream}`);
      await bootstrap(deps, instance);
      // The agent signs in with it, and is of the same group.
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
  if (target !== "backup_end") throw new Error("a snapshot is restored as it is: there is no log behind it");
  report({ step: "recovering", position: "", reachedTime: undefined });
  const directory = appendDirectory(instance);
  await run([`${instance.paths.software}/bin/valkey-check-rdb`, join(directory, baseFile)], { signal });
  const manifest = join(directory, "appendonly.aof.manifest");
  await writeFile(manifest, `file ${baseFile} seq 1 type b\n`, { mode: 0o640, flush: true });
  await syncPath(directory);
  return { position: "", reachedTime: undefined, lockedUsers: [] };
}

export function appendDirectory(instance: Instance): string {
  return join(dataDirectory(instance), "appendonlydir");
}
