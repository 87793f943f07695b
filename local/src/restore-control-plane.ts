import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { hostDeps } from "./host-deps.ts";
import type { Layout } from "./layout.ts";
import type { PlatformParts } from "./platform-parts.ts";
import { runRecovery } from "./run-recovery.ts";
import { withPlatform } from "./with-platform.ts";

export interface RestoreOptions {
  readonly dataDirectory: string;
  /** Key of a snapshot in the object store; the newest when undefined. */
  readonly backupId: string | undefined;
  readonly signal: AbortSignal;
}

/**
 * Fills an empty etcd and history from a snapshot; what was there is set aside beside them. Machines are left as they are:
 * the next start adopts those that run. Throws a UserError while the platform runs, or when there is no snapshot; then
 * everything is as it was.
 */
export async function restoreControlPlane({ dataDirectory, backupId, signal }: RestoreOptions): Promise<void> {
  const deps = hostDeps();
  await withPlatform({ dataDir: dataDirectory, ports: {} }, deps, signal, async (platform, parts) => {
    const aside = setAside(parts.layout, new Date(deps.clock.now()).toISOString().replaceAll(":", "-"));
    try {
      await platform.startStores(signal);
      deps.say(await fill(parts, backupId, signal));
      await platform.stopStores();
    } catch (error) {
      await platform.stopStores();
      for (const { from, to } of aside) {
        rmSync(from, { recursive: true, force: true });
        renameSync(to, from);
      }
      throw error;
    }
    for (const { to } of aside) deps.say(`what was there before is in ${to}`);
    deps.say("restored; nothing is swept or deleted by time until `holdfast admin release-hold restored`");
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
