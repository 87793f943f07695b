import { existsSync } from "node:fs";
import { join } from "node:path";
import { objectsUrlOf, requireSameStore, requireServices, installKeyFiles } from "./object-store.ts";
import { hostDeps } from "./host-deps.ts";
import { layoutOf } from "./layout.ts";
import { runRecovery } from "./run-recovery.ts";
import { withPlatform } from "./with-platform.ts";

export interface RecoverOptions {
  readonly dataDirectory: string;
  /** URL or absolute directory of the object store. */
  readonly objects: string;
  /** File of the master keys that the store's objects are sealed under. */
  readonly masterKey: string;
  /** File with the credential of an S3 store. */
  readonly objectsKey: string | undefined;
  readonly signal: AbortSignal;
}

/** Result of the recovery program for one service. */
export interface RecoveryResult {
  readonly id: string;
  readonly name: string;
  readonly outcome: "recovers" | "kept" | "skipped";
  readonly backupId?: string;
  readonly to?: string;
  /** Memory that the machine gets until its log is replayed; absent if the plan has enough. */
  readonly replayMemoryGb?: number;
  readonly reason?: string;
}

/**
 * Connects the installation of the data directory to this object store and these master keys, and records every service
 * of the store: the next start creates them. Throws a UserError while the platform runs, and for an installation with
 * another store or other keys; then nothing changes.
 */
export async function runServiceRecovery(options: RecoverOptions): Promise<readonly RecoveryResult[]> {
  const { dataDirectory, masterKey, objectsKey, signal } = options;
  const layout = layoutOf(dataDirectory);
  const objects = objectsUrlOf(options.objects);
  requireServices(objects);
  if (existsSync(join(layout.etcd, "data"))) requireSameStore(layout, objects);
  const deps = hostDeps();
  installKeyFiles(layout, { masterKey, objectsKey });
  return withPlatform({ dataDir: dataDirectory, ports: {}, objects }, deps, signal, async (platform, parts) => {
    try {
      await platform.startStores(signal);
      return await runRecovery<readonly RecoveryResult[]>(parts, ["recover"], "not recovered", signal);
    } finally {
      await platform.stopStores();
    }
  });
}
