import { execFile } from "node:child_process";
import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { hostDeps } from "./host-deps.ts";
import type { Layout } from "./layout.ts";
import { controllerSettings, type PlatformParts } from "./platform-children.ts";
import { UserError } from "./user-error.ts";
import { withPlatform } from "./with-platform.ts";

const run = promisify(execFile);

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
  const program = join(parts.checkout, "controller", "src", "recovery", "main.ts");
  const env = { ...parts.environment, ...controllerSettings(parts) };
  const args = [program, "restore", ...(backupId === undefined ? [] : [backupId])];
  try {
    const { stdout } = await run(process.execPath, args, { env, signal });
    const { createdAt, keys, rows } = JSON.parse(stdout) as { createdAt: number; keys: number; rows: number };
    return `restored ${keys} keys and ${rows} rows of history as of ${new Date(createdAt).toISOString()}`;
  } catch (error) {
    const said =
      error instanceof Error && "stderr" in error ? String(error.stderr).trim().split("\n").at(-1) : String(error);
    throw new UserError(`not restored: ${said}`);
  }
}
