import { readdir, readFile, readlink } from "node:fs/promises";
import { basename } from "node:path";
import type { MachinePaths } from "../local/machine-paths.ts";
import { type ProcessIdentity, statOf } from "../local/process-identity.ts";

/**
 * Where there are no namespaces: processes that belong to a machine, whoever became their parent. They were started with
 * its id in their environment, or work in its directory; a PostgreSQL backend overwrites the one and keeps the other.
 */
export async function straysOf(paths: MachinePaths): Promise<ProcessIdentity[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const stats = pids.filter((pid) => pid !== process.pid).flatMap((pid) => statOf(pid) ?? []);
  const belongs = await Promise.all(stats.map(async ({ pid, state }) => state !== "Z" && (await isOf(pid, paths))));
  return stats.filter((_, index) => belongs[index]);
}

async function isOf(pid: number, paths: MachinePaths): Promise<boolean> {
  try {
    const cwd = await readlink(`/proc/${pid}/cwd`);
    if (cwd === paths.directory || cwd.startsWith(`${paths.directory}/`)) return true;
    const environment = await readFile(`/proc/${pid}/environ`, "utf8");
    return environment.split("\0").includes(`HOLDFAST_MACHINE_ID=${basename(paths.directory)}`);
  } catch {
    // It ended, or is someone else's.
    return false;
  }
}
