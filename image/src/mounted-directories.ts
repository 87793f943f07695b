import { readdir, readFile, readlink } from "node:fs/promises";

const passedOver = new Set(["ENOENT", "ESRCH", "EACCES", "EPERM", "EINVAL"]);

/**
 * What any process of this host has mounted, as `root` fields of proc(5) mountinfo: paths within their file systems. Each
 * mount namespace is read once; those of other users, who have none of ours, are passed over. Undefined where there is no /proc.
 */
export async function mountedDirectories(): Promise<Set<string> | undefined> {
  const roots = new Set<string>();
  const seen = new Set<string>();
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  if (pids.length === 0) return undefined;
  for (const pid of pids) {
    try {
      const namespace = await readlink(`/proc/${pid}/ns/mnt`);
      if (seen.has(namespace)) continue;
      const table = await readFile(`/proc/${pid}/mountinfo`, "utf8");
      seen.add(namespace);
      for (const line of table.split("\n")) roots.add(line.split(" ")[3] ?? "");
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // It ended meanwhile, or it is another user's.
      if (code === undefined || !passedOver.has(code)) throw error;
    }
  }
  return roots;
}
