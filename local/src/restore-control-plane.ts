import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { hostDeps } from "./host-deps.ts";
import type { Layout } from "./layout.ts";
import type { PlatformParts } from "./platform-parts.ts";
import { runRecovery } from "./run-recovery.ts";
import { withPlatform } from "./with-platform.ts";

export interface RestoreOptions {
  readonly dataDirectory: string;
  /** Key of a snapshot in the object store; undefined: the newest. */
  readonly backupId: string | undefined;
  readonly signal: AbortSignal;
}

/**
 * Restores etcd and history from a snapshot; the previous data are moved to another directory. Machines do not change:
 * the next start adopts the running ones. Throws a UserError while the platform runs, or if there is no snapshot; then
 * nothing changes.
 */
export async function restoreControlPlane({ dataDirectory, backupId, signal }: RestoreOptions): Promise<void> {
  const deps = hostDeps();
  await withPlatform({ dataDir: dataDirectory, ports: {} }, deps, signal, async (platform, parts) => {
    const aside = setAside(parts.layout, new Date(deps.clock.now()).toISOString().replaceAll(":", "-"));
    try {
      await platform.startStores(signal);
      deps.print(await fill(parts, backupId, signal));
      await platform.stopStores();
    } catch (error) {
      await platform.stopStores();
      for (const { from, to } of aside) {
        rmSync(from, { recursive: true, force: true });
        renameSync(to, from);
      }
      throw error;
    }
    for (const { to } of aside) deps.print(`the previous data are in ${to}`);
    deps.print("restored; no sweep and no expiry deletes anything until `holdfast admin resume-automation restored`");
  });
}

interface Moved {
  readonly from: string;
  readonly to: string;
}

function setAside(layout: Layout, time: string): Moved[] {
  return [layout.etcd, layout.history]
    .map((directory) => ({ from: join(directory, "data"), to: join(directory, `data.before-${time}`) }))
    .filter(({ from, to }) => {
      if (!existsSync(from)) return false;
      renameSync(from, to);
      return true;
    });
}

async function fill(parts: PlatformParts, backupId: string | undefined, signal: AbortSignal): Promise<string> {
  const args = ["restore", ...(backupId === undefined ? [] : [backupId])];
  type Restored = { readonly createdAt: number; readonly keys: number; readonly rows: number };
  const { createdAt, keys, rows } = await runRecovery<Restored>(parts, args, "not restored", signal);
  return `restored ${keys} keys and ${rows} rows of history as of ${new Date(createdAt).toISOString()}`;
}
